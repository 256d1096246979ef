"""What stands before the person who is to sign a build off, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nexmark.report.report import Report
from nexmark.report.table import render_table

_MOST_REASONS = 30
_FENCE = "```"


def question_text(report: Report, evidence: Mapping[str, Any], draft: Path, bundle: Path) -> str:
    """Return the question: the colour, the lines that matter, the table, and where the rest is."""
    return "\n\n".join(_parts(report, evidence, draft, bundle))


def _parts(report: Report, evidence: Mapping[str, Any], draft: Path, bundle: Path) -> Iterator[str]:
    if report.failed:
        yield (
            "**The gate says RED.** Reject, or approve knowingly: then a reason is needed, and the "
            "evidence says so."
        )
    else:
        yield "**The gate says green.**"
    yield _block("\n".join([*map(_build, evidence["builds"]), report.heading()]))
    yield _block("\n".join([*report.lines, *report.alarms]))
    yield _block(render_table(report.rows))
    red = [f"{row.query} {row.verdict}: {row.reason}" for row in report.rows if row.red]
    if red:
        more = [f"and {len(red) - _MOST_REASONS} more"] if len(red) > _MOST_REASONS else []
        yield "What is red:"
        yield _block("\n".join([*red[:_MOST_REASONS], *more]))
    acks = [_ack(ack) for ack in evidence["acceptances"] if ack["covers"]]
    if acks:
        yield "Known and accepted:"
        yield _block("\n".join(acks))
    yield f"Everything in detail: `{draft}`"
    yield f"Whatever you decide is kept, with who and when: `{bundle}`"


def _build(build: Mapping[str, Any]) -> str:
    of = "" if build["role"] == "candidate" else f" for {len(build['queries'])} queries"
    return f"{build['role']}{of}: Spark {build['version']}, {build['source']}, {build['id']}"


def _ack(ack: Mapping[str, Any]) -> str:
    until = f" until {ack['expires']}" if ack["expires"] else ""
    return f"{ack['query']}: {ack['who']}{until}: {ack['reason']} (acceptance {ack['id']})"


def _block(text: str) -> str:
    """Return a text as it is: no Markdown in it counts."""
    return f"{_FENCE}\n{text.replace(_FENCE, chr(39) * 3)}\n{_FENCE}"


__all__ = ["question_text"]
