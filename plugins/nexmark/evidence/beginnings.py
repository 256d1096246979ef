"""What was new in the nights in which reds began: the build, confs, the workload, or none of them.

A night is compared with the night before it.
"""

from collections.abc import Iterable, Mapping, Sequence
from textwrap import shorten

from nexmark.attribution.differences import conf_differences
from nexmark.attribution.explained import ConfDifference
from nexmark.model import SUITE
from nexmark.store import Store, history
from nexmark.store.history import Judged
from nexmark.store.store import NOT_SHAPE
from nexmark.store.table_rows import NightRow

CHANGES = 3
"""The largest number of changed confs that a line names."""
WIDTH = 60
"""The largest number of characters of a value of a conf."""


def beginnings(store: Store, firsts: Iterable[Judged]) -> dict[str, str]:
    """Return by night with what its reds began.

    ``firsts`` are the verdicts with which reds began. The candidate's confs are read of one query
    of a night, because all queries of a night have the same; they may be deleted. Where there is no
    night before, the build is named. In a night from which the gate does not learn, a person chose
    what is compared.
    """
    queries = {first.night: first.query for first in firsts}
    pairs = history.with_nights_before(store, queries)
    asked = set()
    for night, before in pairs:
        query = queries[night.id] if queries[night.id] != SUITE else night.queries[0]
        asked |= {(one.id, query) for one in (night, before) if one is not None}
    confs = history.candidate_confs(store, asked)
    names = store.build_names(night.build_id for night, _ in pairs)
    words = {}
    for night, before in pairs:
        if not night.teaches:
            words[night.id] = "what a person tried"
            continue
        name = names.get(night.build_id, night.build_id)
        changes = [f"build {name}"] if before is None or before.build_id != night.build_id else []
        new, old = confs.get(night.id, ()), confs.get(before.id if before else "", ())
        if before is not None:
            changes += changed_setting(night, before, new, old)
        words[night.id] = " and ".join(changes) or nothing_changed(name, new, old)
    return words


def nothing_changed(
    build: str, new: Sequence[Mapping[str, str]], old: Sequence[Mapping[str, str]]
) -> str:
    """Return in words that nothing changed since the night before.

    The confs are not named if the confs of one night are not known any more.

    Args:
        build: The name of the build of both nights.
        new: The confs of the candidate's repetitions of a query in the later night.
        old: The same of the earlier night.
    """
    same = ", confs and workload" if new and old else " and workload"
    return f"the same build {build}{same} as the night before"


def changed_setting(
    night: NightRow,
    before: NightRow,
    new: Sequence[Mapping[str, str]],
    old: Sequence[Mapping[str, str]],
) -> list[str]:
    """Return in words what changed for the candidate from one night to another: confs, workload.

    Args:
        night: The later night.
        before: The earlier night.
        new: The confs of the candidate's repetitions of a query in the later night.
        old: The same of the earlier night.
    """
    confs = in_words("conf", changed_confs(new, old))
    if night.workload != before.workload:
        return [*confs, f"workload {before.workload} -> {night.workload}"]
    if night.shape == before.shape:
        return confs
    new_spec, old_spec = night.workload_spec, before.workload_spec
    changes = [
        ConfDifference(key, str(new_spec.get(key)), str(old_spec.get(key)))
        for key in sorted((new_spec.keys() | old_spec.keys()) - NOT_SHAPE)
        if new_spec.get(key) != old_spec.get(key)
    ]
    return [*confs, *in_words(f"workload {night.workload},", changes)]


def changed_confs(
    new: Sequence[Mapping[str, str]], old: Sequence[Mapping[str, str]]
) -> Sequence[ConfDifference]:
    """Return how the confs of repetitions differ; nothing if one side is not known."""
    if not new or not old or new[0] in old:  # what two sides share does not differ
        return ()
    return conf_differences(new, old)


def in_words(what: str, differences: Sequence[ConfDifference]) -> list[str]:
    """Return the first differences in words, and the number of the others."""
    said = [
        f"{what} {one.name} {shorten(one.baseline or 'unset', WIDTH)} -> "
        f"{shorten(one.candidate or 'unset', WIDTH)}"
        for one in differences[:CHANGES]
    ]
    more = len(differences) - len(said)
    return [*said, *([f"{more} more"] if more else [])]
