"""Sentences that say what is wrong with an output, with examples of its rows."""

from collections.abc import Iterable, Mapping
from typing import Any

from nexmark.expectations.contract import Column

EXAMPLES = 3
"""The largest number of examples in a sentence."""
MAX_TEXT = 60
"""The largest number of characters of a value in an example."""


def columns_finding(wanted: tuple[Column, ...], written: tuple[Column, ...]) -> str:
    """Return how the columns that were written differ from the columns of the contract."""
    if len(wanted) != len(written):
        listed = ", ".join(map(str, written))
        return f"{len(written)} columns, the contract has {len(wanted)}; found: {listed}"
    return "; ".join(
        f"column {position} is '{has}', the contract says '{wants}'"
        for position, (wants, has) in enumerate(zip(wanted, written, strict=True), 1)
        if wants != has
    )


def cases(name: str, result: Mapping[str, Any], exception: Mapping[str, Any] | None) -> str:
    """Return the number of rows or values that break an expectation, with the first examples.

    Args:
        name: The name of the expectation. The sentence counts rows for ``missing`` and
            ``unexpected``, and cases for all others.
        result: The result of Great Expectations.
        exception: The exception that Great Expectations caught, if there is no result.
    """
    if not result:
        return f"it could not be evaluated: {_message(exception or {})}"
    rows = result.get("details", {}).get("unexpected_rows")
    if rows is not None:
        noun = "row" if name in ("missing", "unexpected") else "case"
        return f"{_counted(result['observed_value'], noun)}, e.g. {_examples(map(row_text, rows))}"
    if values := result.get("partial_unexpected_list"):
        return (
            f"{_counted(result['unexpected_count'], 'value')}, e.g. {_examples(map(_text, values))}"
        )
    return f"observed: {_text(result.get('observed_value'))}"


def _message(exception: Mapping[str, Any]) -> str:
    """Return the first line of the message of an exception that Great Expectations caught."""
    raised = exception if "exception_message" in exception else next(iter(exception.values()), {})
    lines = str(raised.get("exception_message", "no reason given")).strip().splitlines()
    return lines[0] if lines else "no reason given"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _examples(texts: Iterable[str]) -> str:
    return ", ".join(list(dict.fromkeys(texts))[:EXAMPLES])


def row_text(row: Mapping[str, Any]) -> str:
    """Return a row as an example: its values by column."""
    return "{" + ", ".join(f"{name}: {_text(value)}" for name, value in row.items()) + "}"


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return row_text(value)
    text = "NULL" if value is None else repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 2] + ".."
