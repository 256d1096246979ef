"""Draw flame graphs as SVG: each is one file that needs no network and no JavaScript.

We draw them ourselves because other libraries draw in the browser, where an evidence file has to be
readable without scripts, or are not written in Python. The outermost frame is on top. If the
browser runs scripts, a click on a box zooms in, and a search marks the boxes that have a word.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

from nexmark.flames.jfr import kind, label
from nexmark.flames.tree import Comparison, FrameNode
from nexmark.model import ARMS

WIDTH, MARGIN, ROW, TOP = 1200, 10, 17, 84
#: Boxes narrower than this (px) are not drawn, nor are the methods that they call.
NARROWEST = 2.0
#: The largest number of rows; deeper calls are not drawn.
DEEPEST = 120
#: The width (px) of a monospaced letter of 11 px.
_LETTER = 6.7

KINDS = {
    "spark": "Spark",
    "generated": "generated code",
    "jdk": "JDK",
    "other": "other libraries",
    "thread": "threads",
}
#: A change beyond each of these fractions of the baseline's CPU time has the next step's colour.
STEPS = (0.003, 0.01, 0.03)
_CHANGES = {
    -3: ("d-less3", "▼ more than 3 % less"),
    -2: ("d-less2", "▼ 1 % to 3 %"),
    -1: ("d-less1", "▼ 0.3 % to 1 %"),
    0: ("d-0", "no change, or chance"),
    1: ("d-more1", "▲ 0.3 % to 1 %"),
    2: ("d-more2", "▲ 1 % to 3 %"),
    3: ("d-more3", "▲ more than 3 % more"),
}
"""The CSS class and the words of the legend for each of the `STEPS`, down and up."""


@dataclass(frozen=True)
class GraphStyle:
    """What one kind of flame graph shows of each node.

    `own_width` returns the width that a node has beside the nodes that it calls, in any unit.
    `css_class` returns the class of its box, `label` the text in the box, `tooltip` the tooltip.
    `legend` has the class and the words of each colour, in order.
    """

    heading: str
    notes: tuple[str, ...]
    own_width: Callable[[FrameNode], float]
    css_class: Callable[[FrameNode], str]
    label: Callable[[FrameNode], str]
    tooltip: Callable[[FrameNode], str]
    legend: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class _Box:
    """The box of a node: its left edge and its width in px, and its row from the top."""

    node: FrameNode
    left: float
    width: float
    row: int


def flame_graph(root: FrameNode, style: GraphStyle) -> str:
    """Return the SVG of the tree below `root`."""
    widths = _widths(root, style.own_width)
    boxes = list(_layout(root, widths))
    height = TOP + ROW * (1 + max(box.row for box in boxes)) + MARGIN
    return "".join(
        [
            '<svg xmlns="http://www.w3.org/2000/svg" class="nexmark-flames" role="group" '
            f'aria-label="{escape(style.heading)}" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
            f'height="{height}" style="max-width:100%;height:auto">\n',
            f"<style>{_asset('style.css')}</style>\n",
            *_head(style),
            *(_draw(box, style) for box in boxes),
            f"<script>//<![CDATA[\n{_asset('zoom.js')}//]]></script>\n</svg>\n",
        ]
    )


def arm_style(compared: Comparison, arm: str, heading: str, notes: tuple[str, ...]) -> GraphStyle:
    """Return the style of the graph of one arm, coloured by the owner of the code.

    Args:
        compared: The stacks of both arms.
        arm: The arm that the graph shows.
        heading: The heading of the graph.
        notes: The lines below the heading.
    """
    whole = compared.profiles[arm].samples

    def tooltip(node: FrameNode) -> str:
        return (
            f"{compared.cost(node.samples, arm):.3f} CPU-s per million events, "
            f"{node.samples[arm] / whole:.1%} of the {arm}; "
            f"{node.innermost[arm] / whole:.1%} in itself"
        )

    return GraphStyle(
        heading,
        notes,
        own_width=lambda node: node.innermost[arm],
        css_class=lambda node: f"k-{kind(node.name)}",
        label=lambda node: label(node.name),
        tooltip=tooltip,
        legend=tuple((f"k-{name}", words) for name, words in KINDS.items()),
    )


def difference_style(compared: Comparison, heading: str, notes: tuple[str, ...]) -> GraphStyle:
    """Return the style of the graph of both arms, coloured by the change.

    A frame is as wide as in the arm where it uses more CPU time.
    """

    def shown(node: FrameNode) -> str:
        if not _step(compared, node):
            return label(node.name)
        change = 100 * compared.change(node.samples)
        return f"{'▲' if change > 0 else '▼'} {label(node.name)} {change:+.1f} %"

    def tooltip(node: FrameNode) -> str:
        before, after = (compared.cost(node.samples, arm) for arm in ("baseline", "candidate"))
        return (
            f"baseline {before:.3f}, candidate {after:.3f} CPU-s per million events: "
            f"{compared.change(node.samples):+.1%} of the whole baseline "
            f"(chance: {compared.noise(node.samples):.1%})"
        )

    return GraphStyle(
        heading,
        notes,
        own_width=lambda node: max(compared.cost(node.innermost, arm) for arm in ARMS),
        css_class=lambda node: _CHANGES[_step(compared, node)][0],
        label=shown,
        tooltip=tooltip,
        legend=tuple(_CHANGES.values()),
    )


def _step(compared: Comparison, node: FrameNode) -> int:
    """Return the step of a change, from -3 (far less) to 3; 0 if it may be chance."""
    change = compared.change(node.samples)
    if abs(change) <= compared.noise(node.samples):
        return 0
    size = sum(abs(change) > bound for bound in STEPS)
    return size if change > 0 else -size


def _widths(root: FrameNode, own_width: Callable[[FrameNode], float]) -> dict[int, float]:
    """Return by the `id` of each node its own width plus the widths of the nodes that it calls."""
    callers_first = [root]
    for node in callers_first:  # the list grows meanwhile
        callers_first.extend(node.children.values())
    widths: dict[int, float] = {}
    for node in reversed(callers_first):
        below = sum(widths[id(child)] for child in node.children.values())
        widths[id(node)] = own_width(node) + below
    return widths


def _layout(root: FrameNode, widths: dict[int, float]) -> Iterator[_Box]:
    """Return the boxes that are drawn: siblings in the order of their names, as in every graph."""
    scale = (WIDTH - 2 * MARGIN) / (widths[id(root)] or 1)
    pending = [_Box(root, 0.0, widths[id(root)] * scale, 0)]
    while pending:
        box = pending.pop()
        yield box
        left = box.left
        below = []
        for child in sorted(box.node.children.values(), key=lambda each: each.name):
            width = widths[id(child)] * scale
            if width >= NARROWEST and box.row < DEEPEST:
                below.append(_Box(child, left, width, box.row + 1))
            left += width
        pending.extend(reversed(below))


def _head(style: GraphStyle) -> Iterator[str]:
    """Return the heading, the notes and the legend of a graph."""
    yield f'<text class="heading" x="{MARGIN}" y="24">{escape(style.heading)}</text>\n'
    for line, note in enumerate(style.notes):
        yield f'<text class="note" x="{MARGIN}" y="{43 + 16 * line}">{escape(note)}</text>\n'
    left = float(MARGIN)
    for css_class, words in style.legend:
        yield f'<rect class="{css_class}" x="{left:.0f}" y="{TOP - 18}" width="12" height="12"/>'
        yield f'<text class="note" x="{left + 17:.0f}" y="{TOP - 8}">{escape(words)}</text>\n'
        left += 36 + 6.4 * len(words)


def _draw(box: _Box, style: GraphStyle) -> str:
    """Return the rectangle of a box with its tooltip, and with its label if there is room."""
    left, top = MARGIN + box.left, TOP + ROW * box.row
    words = style.label(box.node)
    room = int((box.width - 6) / _LETTER)
    text = ""
    if room >= 3:
        shown = words if len(words) <= room else words[: room - 1] + "…"
        text = f'<text x="{left + 3:.1f}" y="{top + 12}">{escape(shown)}</text>'
    title = f"{box.node.name}\n{style.tooltip(box.node)}"
    return (
        f'<g class="f" data-label="{escape(words)}"><title>{escape(title)}</title>'
        f'<rect class="{style.css_class(box.node)}" x="{left:.2f}" y="{top}" '
        f'width="{box.width:.2f}" height="{ROW - 1}"/>{text}</g>\n'
    )


def _asset(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
