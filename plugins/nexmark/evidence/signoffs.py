"""Sign-offs of releases: their nights, the decisions of people, and the sealed evidence."""

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
from nexmark.store.table_rows import NightRow
from nexmark.verdict.baseline_chain import SignedOffBuild

SHOWN = 50
"""The largest number of sign-offs that are listed."""
LOOKED_AT = 1000
"""The number of sign-offs of all engines among which the last one of an engine is searched."""
SUMS = "SHA256SUMS"
EVIDENCE = "evidence.json"
HTML = "evidence.html"
DRAFT = "draft"
_BUNDLES = "signoff*"
_LINE = re.compile(r"([0-9a-f]{64})  (.+)")


@dataclass(frozen=True)
class SignOffDecision:
    """A person's decision on a sign-off, and the name of the bundle that keeps it.

    ``signed_off`` is None until a person has decided. ``objection`` says why an approval does not
    sign the build off.
    """

    choice: str = "nobody decided"
    who: str = ""
    when: str = ""
    reason: str = ""
    signed_off: bool | None = None
    objection: str = ""
    bundle: str = ""


@dataclass(frozen=True)
class SignOff:
    """A sign-off: its night, and the decisions on it, the last decision first.

    ``draft``: whether the night has written evidence for the person who decides.
    """

    line: NightLine
    decisions: tuple[SignOffDecision, ...]
    draft: bool


@dataclass(frozen=True)
class SealedBundle:
    """A bundle of evidence: its decision, its seal, and a line for each later change of a file."""

    decision: SignOffDecision
    seal: str
    problems: tuple[str, ...]


@of_one_moment
def signoffs_of(store: Store, dags: Collection[str]) -> list[SignOff]:
    """Return the sign-offs among the runs of some DAGs, the newest first."""
    rows = history.nights(store, set(dags) & {SIGNOFF_DAG_ID}, SHOWN)
    return [_signoff(line) for line in lines_of(store, rows)]


@of_one_moment
def signoff_page(store: Store, night: NightRow) -> tuple[SignOff, list[SealedBundle]]:
    """Return one sign-off, and its bundles, each verified against its checksums."""
    (line,) = lines_of(store, [night])
    signoff = _signoff(line)
    directory = Path(night.directory)
    return signoff, [_bundle(directory, decision) for decision in signoff.decisions]


def last_release(store: Store, night: NightRow) -> SignedOffBuild | None:
    """Return the build of a night's engine that was signed off last before the night began.

    The bundle has the decision. If the run directory of a sign-off has no bundle (any more), an
    acceptance of its figures by a person counts as the decision.
    """
    nights = history.nights(store, [SIGNOFF_DAG_ID], LOOKED_AT)
    of_engine = [one for one in nights if one.engine == night.engine]
    acceptances = store.acceptances(night.engine) if of_engine else []
    accepted = {row.night_id: row for row in acceptances}
    for signoff in of_engine:
        decisions = _decisions(Path(signoff.directory))
        if not decisions and (ack := accepted.get(signoff.id)) and not ack.over(night.started):
            decisions = [SignOffDecision(when=ack.accepted.isoformat(), signed_off=True)]
        dated = ((_moment(decision.when), decision.signed_off) for decision in decisions)
        earlier = [(when, yes) for when, yes in dated if when and when <= night.started]
        if earlier and earlier[0][1]:
            return SignedOffBuild(signoff.build_id, f"{earlier[0][0]:%Y-%m-%d}")
    return None


def _moment(text: str) -> datetime | None:
    """Return the moment of a text in the format of ISO 8601; None if the text has none."""
    try:
        moment = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def evidence_file(night: NightRow, bundle: str) -> Path | None:
    """Return the page in a bundle of a night, or the page of its draft; None if there is none."""
    if bundle == DRAFT:
        return alarm_file(night)
    names = {path.parent.name: path for path in Path(night.directory).glob(f"{_BUNDLES}/{HTML}")}
    return names.get(bundle)


def alarm_file(night: AnyNight, query: str = "") -> Path | None:
    """Return the page that the night has written on itself, or on a query with an alarm.

    None if there is no such page.
    """
    directory = RunDirectory(Path(night.directory)).report
    page = (directory / "alarms" / query if query else directory) / HTML
    return page if page.is_file() and query in (*night.queries, "") else None


def verify(directory: Path) -> list[str]:
    """Return a line for each later change of a file in a bundle; [] if nothing has changed.

    NexmarkError if the directory is no bundle.
    """
    sums = _sums(directory)
    problems = []
    for name, wanted in sums.items():
        path = directory / name
        if not path.is_file():
            problems.append(f"{name}: is missing")
        elif digest(path) != wanted:
            problems.append(f"{name}: was changed")
    files = (path for path in directory.rglob("*") if not path.is_dir())
    names = {str(path.relative_to(directory)) for path in files}
    problems += [f"{name}: was added" for name in sorted(names - set(sums) - {SUMS})]
    return problems if EVIDENCE in sums else [*problems, f"{SUMS}: does not list {EVIDENCE}"]


def is_sealed(run_directory: Path) -> bool:
    """Tell whether a run directory has a bundle with its checksums."""
    return any(run_directory.glob(f"{_BUNDLES}/{SUMS}"))


def seal(directory: Path) -> str:
    """Return the SHA-256 of the checksums of a bundle.

    A person who keeps it elsewhere can tell whether the whole bundle was replaced.
    """
    return digest(directory / SUMS)


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _signoff(line: NightLine) -> SignOff:
    decisions = tuple(_decisions(Path(line.night.directory)))
    return SignOff(line, decisions, alarm_file(line.night) is not None)


def _decisions(directory: Path) -> list[SignOffDecision]:
    """Return the decisions on a run, the last decision first."""
    files = directory.glob(f"{_BUNDLES}/{EVIDENCE}")
    decisions = [_decision(path, path.stat().st_mtime_ns) for path in files]
    return sorted(decisions, key=lambda one: (len(one.bundle), one.bundle), reverse=True)


@lru_cache(maxsize=256)
def _decision(path: Path, _: int) -> SignOffDecision:
    """Return the decision in the evidence of a bundle.

    The result is cached until the file changes: a bundle is read-only.
    """
    try:
        decision = json.loads(path.read_text(encoding="utf-8"))["decision"]
        return replace(SignOffDecision(**decision), bundle=path.parent.name)
    except (OSError, ValueError, KeyError, TypeError):
        return SignOffDecision("cannot be read", bundle=path.parent.name)


def _bundle(directory: Path, decision: SignOffDecision) -> SealedBundle:
    bundle = directory / decision.bundle
    try:
        return SealedBundle(decision, seal(bundle), tuple(verify(bundle)))
    except (NexmarkError, OSError) as error:
        return SealedBundle(decision, "", (f"{SUMS}: {error}",))


def _sums(directory: Path) -> dict[str, str]:
    """Return the checksums of a bundle by file name; NexmarkError if they cannot be read."""
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
        match = _LINE.fullmatch(line)
        if match is None or Path(match[2]).is_absolute() or ".." in Path(match[2]).parts:
            raise NexmarkError(f"{path}:{number}: is not a line of checksums; the file was changed")
        sums[match[2]] = match[1]
    return sums
