"""The stages of a rollout as a person writes them: `q0,q1; q2-q8; all`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nexmark.errors import NexmarkError, suggest

_ALL = "all"


def parse_stages(text: str, known: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """The queries of each stage; `known` has the queries of the workload, in order.

    `q2-q8` are all from q2 to q8, `all` are those that no earlier stage has. NexmarkError for a
    query that is not there, or there twice, and for an empty stage.
    """
    stages: list[tuple[str, ...]] = []
    for number, stage in enumerate(text.split(";"), start=1):
        before = {query for each in stages for query in each}
        queries = [query for word in stage.split(",") for query in _named(word.strip(), known)]
        if stage.strip() == _ALL:
            queries = [query for query in known if query not in before]
        where = f"--stages: stage {number}"
        if not queries:
            raise NexmarkError(f"{where}: {stage.strip()!r} has no query left; leave it out")
        if twice := [query for query in queries if query in before or queries.count(query) > 1]:
            raise NexmarkError(f"{where}: {twice[0]} is there twice; name it once")
        stages.append(tuple(query for query in known if query in queries))
    return tuple(stages)


def _named(word: str, known: Sequence[str]) -> Iterator[str]:
    """The queries that a word names."""
    if word == _ALL or not word:
        return
    first, dash, last = (part.strip() for part in word.partition("-"))
    for name in (first, last) if dash else (first,):
        if name not in known:
            raise NexmarkError(
                f"--stages: no query {name!r} in the workload; {suggest(name, known)}"
            )
    if not dash:
        yield first
        return
    if known.index(last) < known.index(first):
        raise NexmarkError(f"--stages: {word!r} goes backwards; write {last}-{first}")
    yield from known[known.index(first) : known.index(last) + 1]
