"""Flame graphs as SVG: one file each, nothing from the network, of use without JavaScript too.

A small writer of our own: the libraries there are either draw in the browser (an evidence file has
to be read without scripts), or are no Python packages. The outermost frame is on top. With
scripts, a click zooms and a word searches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

from nexmark.flames.frames import kind, label
from nexmark.flames.tree import Comparison, Node

WIDTH, MARGIN, ROW, TOP = 1200, 10, 17, 84
#: Boxes that are narrower (px) are not drawn, nor is what they call.
NARROWEST = 2.0
#: Rows; what is called deeper is not drawn.
DEEPEST = 120
#: Of a monospaced letter of 11 px.
_LETTER = 6.7

KINDS = {
    "spark": "Spark",
    "generated": "generated code",
    "jdk": "JDK",
    "other": "other libraries",
    "thread": "threads",
}
#: Changes beyond these parts of the baseline's CPU time are coloured as of steps 1, 2 and 3.
STEPS = (0.003, 0.01, 0.03)

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Look:
    """What one kind of flame graph is made of.

    `width` is what a node takes, in any unit; `style` its CSS class, `label` what is in its box,
    `told` what a person reads who points at it, and `legend` (class, words) in their order.
    """

    heading: str
    notes: tuple[str, ...]
    width: Callable[[Node], float]
    style: Callable[[Node], str]
    label: Callable[[Node], str]
    told: Callable[[Node], str]
    legend: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class _Box:
    node: Node
    x: float
    width: float
    row: int


def flame_graph(root: Node, look: Look) -> str:
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


def arm_look(compared: Comparison, arm: str, heading: str, notes: tuple[str, ...]) -> Look:
    """The flame graph of one arm, coloured by whose code it is."""
    candidate = arm == "candidate"
    whole = (compared.candidate if candidate else compared.baseline).samples

    def samples(node: Node) -> int:
        return node.candidate if candidate else node.baseline

    def told(node: Node) -> str:
        own = node.own_candidate if candidate else node.own_baseline
        return (
            f"{compared.cost(samples(node), arm):.3f} CPU-s per million events, "
            f"{samples(node) / whole:.1%} of the {arm}; {own / whole:.1%} in itself"
        )

    return Look(
        heading,
        notes,
        width=lambda node: node.own_candidate if candidate else node.own_baseline,
        style=lambda node: f"k-{kind(node.name)}",
        label=lambda node: label(node.name),
        told=told,
        legend=tuple((f"k-{name}", words) for name, words in KINDS.items()),
    )


def difference_look(compared: Comparison, heading: str, notes: tuple[str, ...]) -> Look:
    """Both arms in one, coloured by the change. A frame is as wide as in the arm that has more."""

    def shown(node: Node) -> str:
        step = _step(compared, node)
        change = 100 * compared.change(node.baseline, node.candidate)
        if not step:
            return label(node.name)
        return f"{'▲' if change > 0 else '▼'} {label(node.name)} {change:+.1f} %"

    def told(node: Node) -> str:
        change = compared.change(node.baseline, node.candidate)
        noise = compared.noise(node.baseline, node.candidate)
        return (
            f"baseline {compared.cost(node.baseline, 'baseline'):.3f}, candidate "
            f"{compared.cost(node.candidate, 'candidate'):.3f} CPU-s per million events: "
            f"{change:+.1%} of the whole baseline (chance: {noise:.1%})"
        )

    return Look(
        heading,
        notes,
        width=lambda node: max(
            compared.cost(node.own_baseline, "baseline"),
            compared.cost(node.own_candidate, "candidate"),
        ),
        style=lambda node: _change_class(_step(compared, node)),
        label=shown,
        told=told,
        legend=_change_legend(),
    )


def _step(compared: Comparison, node: Node) -> int:
    """How much of a change it is: -3 (far less) to 3; 0 is none, or one that may be chance."""
    change = compared.change(node.baseline, node.candidate)
    if abs(change) <= compared.noise(node.baseline, node.candidate):
        return 0
    size = sum(abs(change) > bound for bound in STEPS)
    return size if change > 0 else -size


def _change_class(step: int) -> str:
    if step == 0:
        return "d-0"
    return f"d-{'more' if step > 0 else 'less'}{abs(step)}"


def _change_legend() -> tuple[tuple[str, str], ...]:
    low, middle, high = (f"{100 * bound:g} %" for bound in STEPS)
    return (
        ("d-less3", f"▼ more than {high} less"),
        ("d-less2", f"▼ {middle} to {high}"),
        ("d-less1", f"▼ {low} to {middle}"),
        ("d-0", "no change, or chance"),
        ("d-more1", f"▲ {low} to {middle}"),
        ("d-more2", f"▲ {middle} to {high}"),
        ("d-more3", f"▲ more than {high} more"),
    )


def _widths(root: Node, own: Callable[[Node], float]) -> dict[int, float]:
    """By the identity of each node: its own width and that of all it calls."""
    widths: dict[int, float] = {}
    pending = [(root, False)]
    while pending:
        node, done = pending.pop()
        if done:
            below = sum(widths[id(child)] for child in node.children.values())
            widths[id(node)] = own(node) + below
        else:
            pending.append((node, True))
            pending.extend((child, False) for child in node.children.values())
    return widths


def _layout(root: Node, widths: dict[int, float]) -> Iterator[_Box]:
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


def _head(look: Look) -> Iterator[str]:
    yield f'<text class="heading" x="{MARGIN}" y="24">{escape(look.heading)}</text>\n'
    for line, note in enumerate(look.notes):
        yield f'<text class="note" x="{MARGIN}" y="{43 + 16 * line}">{escape(note)}</text>\n'
    x = float(MARGIN)
    for style, words in look.legend:
        yield f'<rect class="{style}" x="{x:.0f}" y="{TOP - 18}" width="12" height="12"/>'
        yield f'<text class="note" x="{x + 17:.0f}" y="{TOP - 8}">{escape(words)}</text>\n'
        x += 36 + 6.4 * len(words)


def _draw(box: _Box, look: Look) -> str:
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
    return (_HERE / name).read_text(encoding="utf-8")


__all__ = ["Look", "arm_look", "difference_look", "flame_graph"]
