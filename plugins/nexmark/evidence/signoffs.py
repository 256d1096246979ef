"""Sign-offs of releases: the question, the gate's verdict, the person and the decision."""

import hashlib
import json
import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from nexmark.config import SIGNOFF_DAG_ID
from nexmark.errors import NexmarkError
from nexmark.evidence.night_list import NightLine, lines_of
from nexmark.night.run_directory import RunDirectory
from nexmark.store import Store, history
from nexmark.store.history import AnyNight
from nexmark.store.reading import of_one_moment
from nexmark.store.table_rows import BuildRow, NightRow
from nexmark.verdict.baseline_chain import SignedOffBuild

SHOWN = 50
LOOKED_AT = 1000  # sign-offs of all engines: the last one of an engine is among them
SUMS = "SHA256SUMS"
EVIDENCE = "evidence.json"
HTML = "evidence.html"
DRAFT = "draft"
_BUNDLES = "signoff*"
_LINE = re.compile(r"([0-9a-f]{64})  (.+)")


@dataclass(frozen=True)
class SignOffDecision:
    """A person's decision, and the name of the bundle that keeps it."""

    choice: str = "nobody decided"
    who: str = ""
    when: str = ""
    reason: str = ""
    signed_off: bool | None = None
    objection: str = ""
    bundle: str = ""


@dataclass(frozen=True)
class SignOff:
    """A sign-off: its night, its build, and the decisions on it, the last one first."""

    line: NightLine
    build: BuildRow | None
    decisions: tuple[SignOffDecision, ...]
    draft: bool


@dataclass(frozen=True)
class SealedBundle:
    """A bundle of evidence: its decision, its seal, and later changes to its files."""

    decision: SignOffDecision
    seal: str
    problems: tuple[str, ...]


@of_one_moment
def signoffs_of(store: Store, dags: Collection[str]) -> list[SignOff]:
    """Return the sign-offs, the newest first."""
    rows = history.nights(store, set(dags) & {SIGNOFF_DAG_ID}, SHOWN)
    builds = {build.id: build for build in store.builds({row.build_id for row in rows})}
    return [_signoff(x, builds.get(x.night.build_id)) for x in lines_of(store, rows)]


@of_one_moment
def signoff_page(store: Store, night: NightRow) -> tuple[SignOff, list[SealedBundle]]:
    """Return one sign-off, and what each bundle of it says, checked."""
    (line,) = lines_of(store, [night])
    signoff = _signoff(line, store.build(night.build_id))
    return signoff, [_bundle(Path(night.directory), x) for x in signoff.decisions]


def last_release(store: Store, night: NightRow) -> SignedOffBuild | None:
    """Return the build of a night's engine that was signed off last before the night began.

    The bundle has the decision; where the run directory has none (any more), a sign-off whose
    figures a person accepted counts.
    """
    rows = history.nights(store, [SIGNOFF_DAG_ID], LOOKED_AT)
    own = [row for row in rows if row.engine == night.engine]
    accepted = {x.night_id: x for x in store.acceptances(night.engine)} if own else {}
    for row in own:
        decisions = _decisions(Path(row.directory))
        if not decisions and (ack := accepted.get(row.id)) and not ack.over(night.started):
            decisions = [SignOffDecision(when=ack.accepted.isoformat(), signed_off=True)]
        made = ((_moment(one.when), one.signed_off) for one in decisions)
        earlier = [(when, said) for when, said in made if when and when <= night.started]
        if earlier and earlier[0][1]:
            return SignedOffBuild(row.build_id, f"{earlier[0][0]:%Y-%m-%d}")
    return None


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def evidence_file(night: NightRow, bundle: str) -> Path | None:
    """Return the page of a bundle of a night, or of the draft before it; None for none."""
    if bundle == DRAFT:
        return alarm_file(night)
    names = {path.parent.name: path for path in Path(night.directory).glob(f"{_BUNDLES}/{HTML}")}
    return names.get(bundle)


def alarm_file(night: AnyNight, query: str = "") -> Path | None:
    """Return the page that the night has written of itself, or of a query that alarmed."""
    place = RunDirectory(Path(night.directory)).report
    found = (place / "alarms" / query if query else place) / HTML
    return found if found.is_file() and query in (*night.queries, "") else None


def verify(directory: Path) -> list[str]:
    """Return a line for each later change; [] for an unchanged bundle.

    NexmarkError when the directory is no bundle.
    """
    sums = _sums(directory)
    problems = []
    for name, wanted in sums.items():
        path = directory / name
        if not path.is_file():
            problems.append(f"{name}: is missing")
        elif digest(path) != wanted:
            problems.append(f"{name}: was changed")
    found = {str(x.relative_to(directory)) for x in directory.rglob("*") if not x.is_dir()}
    problems += [f"{name}: was added" for name in sorted(found - set(sums) - {SUMS})]
    return problems if EVIDENCE in sums else [*problems, f"{SUMS}: does not list {EVIDENCE}"]


def is_sealed(run_directory: Path) -> bool:
    """Tell whether a run directory has a bundle with its checksums."""
    return any(run_directory.glob(f"{_BUNDLES}/{SUMS}"))


def seal(directory: Path) -> str:
    """Return what all of a bundle hangs on; kept elsewhere, it tells a bundle that was replaced."""
    return digest(directory / SUMS)


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _signoff(line: NightLine, build: BuildRow | None) -> SignOff:
    decisions = tuple(_decisions(Path(line.night.directory)))
    return SignOff(line, build, decisions, alarm_file(line.night) is not None)


def _decisions(directory: Path) -> list[SignOffDecision]:
    """Return the decisions on a run, the last one first."""
    found = directory.glob(f"{_BUNDLES}/{EVIDENCE}")
    decisions = [_decision(path, path.stat().st_mtime_ns) for path in found]
    return sorted(decisions, key=lambda one: (len(one.bundle), one.bundle), reverse=True)


@lru_cache(maxsize=256)
def _decision(path: Path, _: int) -> SignOffDecision:
    """Read a decision; a bundle is read-only, so once is enough."""
    try:
        made = json.loads(path.read_text(encoding="utf-8"))["decision"]
        return replace(SignOffDecision(**made), bundle=path.parent.name)
    except (OSError, ValueError, KeyError, TypeError):
        return SignOffDecision("cannot be read", bundle=path.parent.name)


def _bundle(directory: Path, decision: SignOffDecision) -> SealedBundle:
    place = directory / decision.bundle
    try:
        return SealedBundle(decision, seal(place), tuple(verify(place)))
    except (NexmarkError, OSError) as error:
        return SealedBundle(decision, "", (f"{SUMS}: {error}",))


def _sums(directory: Path) -> dict[str, str]:
    path = directory / SUMS
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise NexmarkError(
            f"{directory}: is not an evidence bundle: {SUMS} cannot be read ({error}); give the "
            "directory `signoff` of a run, or one under `signoffs`"
        ) from None
    sums: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        found = _LINE.fullmatch(line)
        if found is None or Path(found[2]).is_absolute() or ".." in Path(found[2]).parts:
            raise NexmarkError(f"{path}:{number}: is not a line of checksums; the file was changed")
        sums[found[2]] = found[1]
    return sums
