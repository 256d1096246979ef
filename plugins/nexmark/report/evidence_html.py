"""The evidence as one HTML file: it asks nobody for anything, and every text in it is escaped."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 76em; padding: 0 1em;
  color: #1c1f23; }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin-top: 2em; }
table { border-collapse: collapse; font-size: 13px; }
th, td { border: 1px solid #ccd2d8; padding: .25em .6em; text-align: left; vertical-align: top; }
th { background: #f1f3f5; } td.number { text-align: right; font-variant-numeric: tabular-nums; }
pre { background: #f6f7f8; padding: 1em; overflow-x: auto; font-size: 12px; }
.box { border-left: .5em solid #8a9199; background: #f6f7f8; padding: .5em 1em; }
.yes { border-color: #2b8a3e; } .no { border-color: #c92a2a; }
""".strip()
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"

_VERDICTS = ("query", "metric", "value", "ratio", "lo", "hi", "mde", "pairs", "reason")
_BUILDS = ("role", "version", "id", "source", "queries")
_TESTS = ("kind", "query", "size", "value", "ratio", "lo", "hi")
_ACKS = ("id", "state", "query", "size", "night_id", "who", "accepted", "expires", "reason", "link")
_CANARY = ("host", "metric", "moment", "median", "readings")


def render(evidence: Mapping[str, Any]) -> str:
    """Return the evidence (``evidence.collect``) as a page."""
    title = f"Sign-off of {_candidate(evidence)}"
    parts = [
        f"<h1>{_text(title)}</h1>",
        _decision(evidence),
        f"<p>Run {_text(evidence['run'])}, written {_text(evidence['written'])}</p>",
        _lines([*evidence["summary"], *evidence["alarms"]]),
        f"<pre>{_text(evidence['table'])}</pre>",
        _section("Builds", _table(evidence["builds"], _BUILDS)),
        _section("Verdicts", _gate(evidence) + _table(evidence["verdicts"], _VERDICTS)),
        _section(
            "Self-test of the gate",
            f"<p>{_text(evidence['self_test']['words'])}</p>"
            + _table(evidence["self_test"]["tonight"], _TESTS),
        ),
        _section("Accepted", _table(evidence["acceptances"], (*_ACKS, "withdrawal", "covers"))),
        _section("Hosts", _hosts(evidence) + _table(evidence["canary"], _CANARY)),
        _section("Spark confs that are not the defaults", _json(evidence["confs"])),
        _section("Gate", _json(evidence["gate"])),
        _section("Night", _json(evidence["night"])),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>{_text(title)}</title>\n<style>\n{_STYLE}\n</style>\n</head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body>\n</html>\n"
    )


def _candidate(evidence: Mapping[str, Any]) -> str:
    build = evidence["builds"][0]
    return f"Spark {build['version']} ({build['source']}) as {evidence['night']['engine']}"


def _decision(evidence: Mapping[str, Any]) -> str:
    made = evidence["decision"]
    signed = made.get("signed_off")
    kind = {True: "yes", False: "no"}.get(signed, "")
    head = {True: "SIGNED OFF", False: "NOT SIGNED OFF"}.get(signed, "NOT DECIDED YET")
    colour = "red" if evidence["red"] else "green"
    who = f" by {made['who']}" if made["who"] else ""
    when = f", {made['when']}" if made["when"] else ""
    said = [f"{head}: {made['choice']}{who}{when}. The gate says: {colour}."]
    if made["reason"]:
        said.append(f"Reason: {made['reason']}")
    if made.get("objection"):
        said.append(f"Not signed off for: {made['objection']}")
    return f'<div class="box {kind}">{_lines(said)}</div>'


def _gate(evidence: Mapping[str, Any]) -> str:
    night = evidence["night"]
    return (
        f"<p>Gate version {_text(evidence['gate']['version'])}, mode {_text(night['mode'])}, "
        f"{_text(night['repetitions'])} repetitions of each query.</p>"
    )


def _hosts(evidence: Mapping[str, Any]) -> str:
    grade = evidence["grade"]
    why = f": {grade['reason']}" if grade["reason"] else ""
    hosts = ", ".join(evidence["hosts"]) or "none"
    return (
        f"<p>{_text(hosts)}. Grade by the canary: {_text(grade['grade'] or 'none')}"
        f"{_text(why)}.</p>"
    )


def _section(head: str, content: str) -> str:
    return f"<h2>{_text(head)}</h2>\n{content}"


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(f"<p>{_text(line)}</p>" for line in lines)


def _table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    if not rows:
        return "<p>none</p>"
    head = "".join(f"<th>{_text(name.replace('_', ' '))}</th>" for name in columns)
    body = "\n".join(
        "<tr>" + "".join(_cell(row.get(name)) for name in columns) + "</tr>" for row in rows
    )
    return f"<table>\n<tr>{head}</tr>\n{body}\n</table>"


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f'<td class="number">{value:.4g}</td>'
    if isinstance(value, int) and not isinstance(value, bool):
        return f'<td class="number">{value}</td>'
    if isinstance(value, list | tuple):
        value = ", ".join(map(str, value))
    if isinstance(value, Mapping):
        value = ", ".join(f"{name}: {one}" for name, one in value.items())
    return f"<td>{_text('' if value is None else value)}</td>"


def _json(value: Any) -> str:
    return f"<pre>{_text(json.dumps(value, indent=1, default=str, ensure_ascii=False))}</pre>"


def _text(value: object) -> str:
    return escape(str(value), quote=True)


__all__ = ["render"]
