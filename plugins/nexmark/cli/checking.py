"""The verbs that check files: verify, replay, validate."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer


def verify(
    directory: Annotated[Path, typer.Argument(help="The evidence of a sign-off.")],
    seal: Annotated[
        str | None, typer.Option(help="What the task `evidence` logged: it must be the same.")
    ] = None,
) -> int:
    """Say whether the evidence of a sign-off is as it was written; 0 if it is."""
    from nexmark.evidence import signoffs

    problems = signoffs.verify(directory)
    found = signoffs.seal(directory)
    if seal and seal.lower() != found:
        problems.append(f"seal: is {found}, not the one given: the whole bundle was replaced")
    for problem in problems:
        print(f"{directory}: {problem}", file=sys.stderr)
    if not problems:
        print(f"{directory}: unchanged; seal {found}")
    return 1 if problems else 0


def replay(context: typer.Context) -> int:
    """Judge stored nights again: nexmark replay --nights nights.csv [--gate gate.yaml]."""
    from nexmark.verdict.__main__ import main

    return main(context.args)


def validate(
    query: Annotated[str, typer.Option(help="q0 to q23, q14_python_udf.")],
    events: Annotated[Path, typer.Option(help="Directory with dumped or recorded events.")],
    output: Annotated[Path, typer.Option(help="Directory that the query job wrote.")],
    sink: Annotated[Literal["parquet", "filesystem"], typer.Option(help="q10 only.")] = "parquet",
    data_docs: Annotated[
        Path | None, typer.Option(help="Add the result to the Data Docs in this directory.")
    ] = None,
) -> int:
    """Check the output of one query job against the reference; 0 if it is right."""
    from nexmark.expectations import ExpectationsError
    from nexmark.expectations import validate as checked

    docs = None if data_docs is None else str(data_docs)
    try:
        found = checked(query, str(output), str(events), docs, sink)
    except ExpectationsError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    numbers = found.statistics
    met = found.expectations_evaluated - found.expectations_failed
    print(
        f"{found.query}: {'right' if found.success else 'WRONG'}: {met} of "
        f"{found.expectations_evaluated} expectations met; {numbers['rows']} rows, reference "
        f"{numbers['reference_rows']}, from {numbers['events']} events in {numbers['seconds']} s"
    )
    for failure in found.failures:
        print(f"  {failure}")
    if found.docs:
        print(f"Data Docs: {found.docs}")
    return 0 if found.success else 1
