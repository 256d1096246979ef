"""The evidence of a night or a sign-off as one HTML file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nexmark.report.charts import night_chart
from nexmark.report.html import as_json, block, box, figure, folded, lines, page, section, table

_VERDICTS = ("query", "metric", "value", "ratio", "lo", "hi", "mde", "pairs", "reason")
_BUILDS = ("role", "version", "id", "source", "queries")
_TESTS = ("kind", "query", "size", "value", "ratio", "lo", "hi")
_ACKS = ("id", "state", "query", "size", "night_id", "who", "accepted", "expires", "reason", "link")
_CANARY = ("host", "metric", "moment", "median", "readings")
_VALIDATIONS = ("query", "success", "evaluated", "failures", "statistics")
_FACTS = ("host", "kernel", "cpu_model", "cores", "governor", "java", "python", "boot_id")


def render(evidence: Mapping[str, Any]) -> str:
    """Return the evidence (``evidence.collect``) as a page."""
    kind = "Night" if evidence["decision"] is None else "Sign-off"
    parts = [
        _head(evidence),
        *lines([f"Run {evidence['run']}, written {evidence['written']}"]).splitlines(),
        lines([*evidence["summary"], *evidence["alarms"]]),
        figure(
            lambda: night_chart(evidence["rows"]),
            "CPU ratio of each query with its 95 % interval; a red triangle fails the night",
        ),
        block(evidence["table"]),
        _again(evidence["reproduce"]),
        section("Builds", table(evidence["builds"], _BUILDS)),
        section("Verdicts", _gate(evidence), table(evidence["verdicts"], _VERDICTS)),
        section("Results", table(evidence["validations"], _VALIDATIONS)),
        section(
            "Self-test of the gate",
            lines([evidence["self_test"]["words"]]),
            table(evidence["self_test"]["tonight"], _TESTS),
        ),
        section("Accepted", table(evidence["acceptances"], (*_ACKS, "withdrawal", "covers"))),
        hosts(evidence),
        section("Spark confs that are not the defaults", as_json(evidence["confs"])),
        section("Gate", as_json(evidence["gate"])),
        section("Night", as_json(evidence["night"])),
    ]
    return page(f"{kind} of {_candidate(evidence)}", parts)


def hosts(evidence: Mapping[str, Any]) -> str:
    """Return the hosts: what they are, how far they can be trusted, what the canary measured."""
    grade = evidence["grade"]
    why = f": {grade['reason']}" if grade["reason"] else ""
    names = ", ".join(evidence["hosts"]) or "none"
    facts = [{"host": host, **found} for host, found in evidence["host_facts"].items()]
    return section(
        "Hosts",
        lines([f"{names}. Grade by the canary: {grade['grade'] or 'none'}{why}."]),
        table(facts, _FACTS) if facts else "",
        folded("What the canary measured", table(evidence["canary"], _CANARY)),
    )


def _head(evidence: Mapping[str, Any]) -> str:
    if evidence["decision"] is not None:
        return _decision(evidence)
    red = evidence["red"]
    return box("no" if red else "yes", [f"The night is {'red' if red else 'green'}."])


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
    return box(kind, said)


def _gate(evidence: Mapping[str, Any]) -> str:
    night = evidence["night"]
    return lines(
        [
            f"Gate version {evidence['gate']['version']}, mode {night['mode']}, "
            f"{night['repetitions']} repetitions of each query."
        ]
    )


def _again(commands: Mapping[str, str]) -> str:
    if not commands:
        return ""
    parts = [block(command, "command") for command in commands.values()]
    return section("To measure what is red again", *parts)


__all__ = ["hosts", "render"]
