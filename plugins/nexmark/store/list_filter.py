"""Which rows of a list a person wants to see, as conditions on nights and their builds.

The text of a search is compared with the names of builds as people see them, without secrets:
nobody finds out a password in the address of a build by searching for parts of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, or_, select
from sqlalchemy.orm import Session, aliased

from nexmark.secrets import without_secrets
from nexmark.store.table_rows import BuildRow, NightRow, VerdictRow
from nexmark.store.verdict_rows import by_newest_gate


@dataclass(frozen=True)
class ListFilter:
    """Which rows of a list are wanted; a field that is empty lets all rows through.

    ``by`` is the person who started the night, or who accepted the figures. ``red``: only rows with
    a red verdict. ``search`` is a part of the name of a night or of a build, or of another text of
    the row.
    """

    engine: str = ""
    workload: str = ""
    by: str = ""
    red: bool = False
    search: str = ""

    @property
    def active(self) -> bool:
        """Whether the filter may leave out a row."""
        return self != EVERYTHING


EVERYTHING = ListFilter()
"""The filter that lets all rows through."""


def night_conditions(session: Session, wanted: ListFilter) -> list[ColumnElement[bool]]:
    """Return the conditions on the nights that a filter lets through."""
    columns = (
        (NightRow.engine, wanted.engine),
        (NightRow.workload, wanted.workload),
        (NightRow.started_by, wanted.by),
    )
    conditions = [column == value for column, value in columns if value]
    if wanted.red:
        conditions.append(_is_red())
    if wanted.search:
        conditions.append(_mentions(wanted.search, builds_named(session, wanted.search)))
    return conditions


def builds_named(session: Session, text: str) -> list[str]:
    """Return the ids of the builds whose id, version, source or revision has a text in it."""
    columns = (BuildRow.id, BuildRow.version, BuildRow.source, BuildRow.revision)
    builds = session.execute(select(*columns))
    return [build.id for build in builds if has_text(text, build)]


def has_text(text: str, fields: Sequence[str | None]) -> bool:
    """Tell whether a field has a text in it, as people see the field; case does not matter."""
    wanted = text.strip().casefold()
    texts = (without_secrets(field) for field in fields if field)
    return not wanted or any(wanted in shown.casefold() for shown in texts)


def _is_red() -> ColumnElement[bool]:
    """Return the condition that a verdict on the night is red."""
    red = select(VerdictRow.id).where(
        VerdictRow.night_id == NightRow.id,
        VerdictRow.decides,
        VerdictRow.bad,
        VerdictRow.acceptance_id.is_(None) | VerdictRow.acceptance_withdrawn,
        by_newest_gate(),
    )
    return red.exists()


def _mentions(text: str, builds: Sequence[str]) -> ColumnElement[bool]:
    """Return the condition that a night, or one of its builds, has a text in its name."""
    accepted = aliased(NightRow)
    of_builds = select(accepted.id).where(accepted.build_id.in_(builds))
    compared = select(VerdictRow.id).where(
        VerdictRow.night_id == NightRow.id,
        or_(VerdictRow.baseline_build.in_(builds), VerdictRow.baseline_run.in_(of_builds)),
    )
    names = (NightRow.id, NightRow.cluster)
    return or_(
        *(name.icontains(text.strip(), autoescape=True) for name in names),
        NightRow.build_id.in_(builds),
        compared.exists(),
    )
