"""Flame graphs as SVG: one file each, without the network, readable without JavaScript.

A small writer of our own: other libraries draw in the browser (an evidence file must be readable
without scripts), or are no Python packages. The outermost frame is on top. With scripts, a click
zooms and a word searches.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

from nexmark.flames.jfr import kind, label
from nexmark.flames.tree import Comparison, FrameNode
from nexmark.model import ARMS

WIDTH, MARGIN, ROW, TOP = 1200, 10, 17, 84
#: Narrower boxes (px) are not drawn, nor the methods that they call.
NARROWEST = 2.0
#: The most rows; deeper calls are not drawn.
DEEPEST = 120
#: The width (px) of a monospaced letter of 11 px.
_LETTER = 6.7

KINDS = {
    **{"spark": "Spark", "generated": "generated code", "jdk": "JDK"},
    **{"other": "other libraries", "thread": "threads"},
}
#: Changes beyond these parts of the baseline's CPU time are coloured as of steps 1, 2 and 3.
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
"""CSS class and words of each of the `STEPS`, down and up."""


@dataclass(frozen=True)
class GraphStyle:
    """The elements of one kind of flame graph.

    `width` gives the width of a node, in any unit; `style` its CSS class, `label` the text in its
    box, `told` the tooltip. `legend` has (class, words) in their order.
    """

    heading: str
    notes: tuple[str, ...]
    width: Callable[[FrameNode], float]
    style: Callable[[FrameNode], str]
    label: Callable[[FrameNode], str]
    told: Callable[[FrameNode], str]
    legend: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class _Box:
    node: FrameNode
    x: float
    width: float
    row: int


def flame_graph(root: FrameNode, look: GraphStyle) -> str:
    """The SVG of the tree below `root`."""
    widths = _widths(root, look.width)
    boxes = list(_layout(root, widths))
    height = TOP + ROW * (1 + max(box.row for box in boxes)) + MARGIN
    return "".join(
        [
            '<svg xmlns="http://www.w3.org/2000/svg" class="nexmark-flames" role="group" '
            f'aria-label="{escape(look.heading)}" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
            f'height="{height}" style="max-width:100%;height:auto">\n',
            f"<style>{_asset('style.css')}</style>\n",
            *_head(look),
            *(_draw(box, look) for box in boxes),
            f"<script>//<![CDATA[\n{_asset('zoom.js')}//]]></script>\n</svg>\n",
        ]
    )


def arm_look(compared: Comparison, arm: str, heading: str, notes: tuple[str, ...]) -> GraphStyle:
    """The flame graph of one arm, coloured by the owner of the code."""
    whole = compared.profiles[arm].samples

    def told(node: FrameNode) -> str:
        return (
            f"{compared.cost(node.samples, arm):.3f} CPU-s per million events, "
            f"{node.samples[arm] / whole:.1%} of the {arm}; {node.own[arm] / whole:.1%} in itself"
        )

    return GraphStyle(
        heading,
        notes,
        width=lambda node: node.own[arm],
        style=lambda node: f"k-{kind(node.name)}",
        label=lambda node: label(node.name),
        told=told,
        legend=tuple((f"k-{name}", words) for name, words in KINDS.items()),
    )


def difference_look(compared: Comparison, heading: str, notes: tuple[str, ...]) -> GraphStyle:
    """Both arms in one, coloured by the change. A frame has the width of the larger arm."""

    def shown(node: FrameNode) -> str:
        if not _step(compared, node):
            return label(node.name)
        change = 100 * compared.change(node.samples)
        return f"{'▲' if change > 0 else '▼'} {label(node.name)} {change:+.1f} %"

    def told(node: FrameNode) -> str:
        before, after = (compared.cost(node.samples, arm) for arm in ("baseline", "candidate"))
        return (
            f"baseline {before:.3f}, candidate {after:.3f} CPU-s per million events: "
            f"{compared.change(node.samples):+.1%} of the whole baseline "
            f"(chance: {compared.noise(node.samples):.1%})"
        )

    return GraphStyle(
        heading,
        notes,
        width=lambda node: max(compared.cost(node.own, arm) for arm in ARMS),
        style=lambda node: _CHANGES[_step(compared, node)][0],
        label=shown,
        told=told,
        legend=tuple(_CHANGES.values()),
    )


def _step(compared: Comparison, node: FrameNode) -> int:
    """The step of a change: -3 (far less) to 3; 0 is none, or one that may be chance."""
    change = compared.change(node.samples)
    if abs(change) <= compared.noise(node.samples):
        return 0
    size = sum(abs(change) > bound for bound in STEPS)
    return size if change > 0 else -size


def _widths(root: FrameNode, own: Callable[[FrameNode], float]) -> dict[int, float]:
    """By the identity of each node: the sum of its own width and the widths of all it calls."""
    nodes = [root]
    for node in nodes:  # which grows meanwhile: callers come before what they call
        nodes.extend(node.children.values())
    widths: dict[int, float] = {}
    for node in reversed(nodes):
        below = sum(widths[id(child)] for child in node.children.values())
        widths[id(node)] = own(node) + below
    return widths


def _layout(root: FrameNode, widths: dict[int, float]) -> Iterator[_Box]:
    """The boxes that are drawn: siblings in the order of their names, the same in every graph."""
    scale = (WIDTH - 2 * MARGIN) / (widths[id(root)] or 1)
    pending = [_Box(root, 0.0, widths[id(root)] * scale, 0)]
    while pending:
        box = pending.pop()
        yield box
        x = box.x
        below = []
        for child in sorted(box.node.children.values(), key=lambda each: each.name):
            width = widths[id(child)] * scale
            if width >= NARROWEST and box.row < DEEPEST:
                below.append(_Box(child, x, width, box.row + 1))
            x += width
        pending.extend(reversed(below))


def _head(look: GraphStyle) -> Iterator[str]:
    yield f'<text class="heading" x="{MARGIN}" y="24">{escape(look.heading)}</text>\n'
    for line, note in enumerate(look.notes):
        yield f'<text class="note" x="{MARGIN}" y="{43 + 16 * line}">{escape(note)}</text>\n'
    x = float(MARGIN)
    for style, words in look.legend:
        yield f'<rect class="{style}" x="{x:.0f}" y="{TOP - 18}" width="12" height="12"/>'
        yield f'<text class="note" x="{x + 17:.0f}" y="{TOP - 8}">{escape(words)}</text>\n'
        x += 36 + 6.4 * len(words)


def _draw(box: _Box, look: GraphStyle) -> str:
    x, y = MARGIN + box.x, TOP + ROW * box.row
    words = look.label(box.node)
    room = int((box.width - 6) / _LETTER)
    text = ""
    if room >= 3:
        shown = words if len(words) <= room else words[: room - 1] + "…"
        text = f'<text x="{x + 3:.1f}" y="{y + 12}">{escape(shown)}</text>'
    title = f"{box.node.name}\n{look.told(box.node)}"
    return (
        f'<g class="f" data-label="{escape(words)}"><title>{escape(title)}</title>'
        f'<rect class="{look.style(box.node)}" x="{x:.2f}" y="{y}" width="{box.width:.2f}" '
        f'height="{ROW - 1}"/>{text}</g>\n'
    )


def _asset(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
