"""A page of HTML that asks nobody for anything: its style, tables and figures, all text escaped."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

_STYLE = """
:root { color-scheme: light dark; --ink: #1c1f23; --page: #fff; --quiet: #f3f5f7; --line: #ccd2d8;
  --dim: #5a636c; --good: #2b8a3e; --bad: #c92a2a; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ec; --page: #15181b; --quiet: #20252a;
  --line: #3d454d; --dim: #a5afb8; --good: #51cf66; --bad: #ff8787; } }
body { font: 15px/1.45 system-ui, sans-serif; margin: 1.5em auto; max-width: 76em; padding: 0 1em;
  color: var(--ink); background: var(--page); overflow-wrap: anywhere; }
h1 { font-size: 1.45em; line-height: 1.25; } h2 { font-size: 1.15em; margin-top: 2em; }
table { border-collapse: collapse; font-size: 13px; overflow-wrap: normal; }
th, td { border: 1px solid var(--line); padding: .25em .6em; text-align: left;
  vertical-align: top; }
th { background: var(--quiet); } td.number { text-align: right;
  font-variant-numeric: tabular-nums; white-space: nowrap; }
td { min-width: 3em; max-width: 40em; }
.wide { overflow-x: auto; }
pre { background: var(--quiet); padding: .8em 1em; overflow-x: auto; font-size: 12px;
  overflow-wrap: normal; }
pre.command { white-space: pre-wrap; user-select: all; }
summary { cursor: pointer; padding: .3em 0; }
summary:focus-visible { outline: 2px solid var(--ink); }
figure { margin: 1em 0; overflow-x: auto; } figcaption { color: var(--dim); font-size: 13px; }
svg, img { max-width: 100%; height: auto; }
.box { border-left: .5em solid var(--dim); background: var(--quiet); padding: .5em 1em; }
.box p { margin: .4em 0; }
.yes { border-color: var(--good); } .no { border-color: var(--bad); }
ins, del { text-decoration: none; display: block; } ins { background: #2b8a3e33; }
del { background: #c92a2a33; }
@media (max-width: 40em) { body { margin: .5em auto; padding: 0 .7em; } }
@media print { details { display: block; } }
""".strip()
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def page(title: str, parts: Iterable[str]) -> str:
    """Return a whole page; ``parts`` are HTML, the title is not."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{text(title)}</title>\n<style>\n{_STYLE}\n</style>\n</head>\n<body>\n"
        f"<h1>{text(title)}</h1>\n" + "\n".join(parts) + "\n</body>\n</html>\n"
    )


def text(value: object) -> str:
    """Return anything as text that is harmless in HTML, in an attribute too."""
    return escape(str(value), quote=True)


def section(head: str, *content: str) -> str:
    """Return HTML below a heading."""
    return f"<h2>{text(head)}</h2>\n" + "\n".join(content)


def folded(head: str, content: str) -> str:
    """Return HTML that shows when its heading is opened."""
    return f"<details><summary>{text(head)}</summary>\n{content}\n</details>"


def lines(texts: Iterable[str]) -> str:
    """Return a paragraph for each text."""
    return "\n".join(f"<p>{text(line)}</p>" for line in texts)


def box(kind: str, texts: Iterable[str]) -> str:
    """Return what is most important: ``kind`` is yes, no or ""."""
    return f'<div class="box {kind}">{lines(texts)}</div>'


def block(content: str, kind: str = "") -> str:
    """Return a text as it is, in a fixed width."""
    return f'<pre class="{text(kind)}">{text(content)}</pre>' if content else lines(["none"])


def figure(draw: Callable[[], str], caption: str) -> str:
    """Return a chart with its caption; one that cannot be drawn is told, the rest goes on."""
    try:
        chart = draw()
    except Exception as error:  # whatever the library does not like: the numbers are in a table
        said = " ".join(str(error).split())[:200]
        return lines([f"{caption}: cannot be drawn ({type(error).__name__}: {said})"])
    if not chart:
        return ""
    label = text(caption)
    return (
        f'<figure role="img" aria-label="{label}">{chart}<figcaption>{label}</figcaption></figure>'
    )


def image(path: Path, caption: str) -> str:
    """Return an SVG file as a picture that is part of the page: nothing in it can run."""
    try:
        content = base64.b64encode(path.read_bytes()).decode("ascii")
    except OSError as error:
        return lines([f"{caption}: cannot be read ({error.strerror})"])
    label = text(caption)
    source = f"data:image/svg+xml;base64,{content}"
    return f'<figure><img alt="{label}" src="{source}"><figcaption>{label}</figcaption></figure>'


def table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Return rows as a table of these columns."""
    if not rows:
        return "<p>none</p>"
    head = "".join(f'<th scope="col">{text(name.replace("_", " "))}</th>' for name in columns)
    body = "\n".join(
        "<tr>" + "".join(_cell(row.get(name)) for name in columns) + "</tr>" for row in rows
    )
    return f'<div class="wide"><table>\n<tr>{head}</tr>\n{body}\n</table></div>'


def as_json(value: Any) -> str:
    """Return plain data as its JSON."""
    return block(json.dumps(value, indent=1, default=str, ensure_ascii=False))


def diff(unified: str) -> str:
    """Return a unified diff with what was added and removed marked."""
    marks = {"+": "ins", "-": "del"}
    found = []
    for number, line in enumerate(unified.splitlines()):
        tag = marks.get(line[:1]) if number > 1 else None  # the first two lines name the arms
        found.append(f"<{tag}>{text(line)}</{tag}>" if tag else f"{text(line)}\n")
    return f"<pre>{''.join(found)}</pre>"


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f'<td class="number">{value:.4g}</td>'
    if isinstance(value, int) and not isinstance(value, bool):
        return f'<td class="number">{value}</td>'
    if isinstance(value, list | tuple):
        value = ", ".join(map(str, value))
    if isinstance(value, Mapping):
        value = ", ".join(f"{name}: {one}" for name, one in value.items())
    return f"<td>{text('' if value is None else value)}</td>"


__all__ = [
    "as_json",
    "block",
    "box",
    "diff",
    "figure",
    "folded",
    "image",
    "lines",
    "page",
    "section",
    "table",
    "text",
]
