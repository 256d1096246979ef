"""A page as a person looks at it: by headings, by terms with what they say, by cells of tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import pairwise

VOID = frozenset({"meta", "link", "br", "input", "img"})
UNSEEN = frozenset({"script", "style"})


@dataclass
class Element:
    """An element of a page with all the text within it."""

    tag: str
    attributes: dict[str, str | None]
    parent: Element | None
    texts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())

    @property
    def ancestors(self) -> Iterator[Element]:
        one = self.parent
        while one is not None:
            yield one
            one = one.parent


class Looks(HTMLParser):
    """What a person sees of a page in one look at a place with a name."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[Element] = []
        self._open: list[Element] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, dict(attrs), self._open[-1] if self._open else None)
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop().tag != tag:
            pass

    def handle_data(self, data: str) -> None:
        if not UNSEEN & {one.tag for one in self._open}:
            for one in self._open:
                one.texts.append(data)

    def of(self, *tags: str, within: Element | None = None) -> list[Element]:
        """The elements with these tags, in their order on the page."""
        return [
            one
            for one in self.elements
            if one.tag in tags and (within is None or any(up is within for up in one.ancestors))
        ]

    def said(self, term: str) -> str:
        """What stands beside a term; "" if the page does not have the term."""
        pairs = self.of("dt", "dd")
        texts = [said.text for name, said in pairwise(pairs) if name.text == term]
        return texts[0] if texts else ""

    def below(self, heading: str) -> str:
        """The text of the section with a heading; "" if there is none."""
        for title in self.of("h2"):
            if title.text == heading and title.parent is not None:
                return title.parent.text.removeprefix(heading).strip()
        return ""

    def named(self, label: str) -> Element:
        """The only place with this name for screen readers."""
        (place,) = (one for one in self.elements if one.attributes.get("aria-label") == label)
        return place

    def table(self, label: str) -> list[dict[str, str]]:
        """The rows of a table, each with its cells by the headings of their columns."""
        head, *rows = self.of("tr", within=self.named(label))
        names = [cell.text.removesuffix(" ▾") for cell in self.of("th", within=head)]
        cells = ([cell.text for cell in self.of("th", "td", within=row)] for row in rows)
        return [dict(zip(names, row, strict=True)) for row in cells]
