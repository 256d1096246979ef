"""The evidence of one alarm as one HTML file: a query of a night in depth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nexmark.report.attribution_html import render_attribution
from nexmark.report.charts import history_chart, over_time_chart, pairs_chart
from nexmark.report.evidence_html import hosts
from nexmark.report.flames import render_flames
from nexmark.report.html import (
    as_json,
    block,
    box,
    diff,
    figure,
    folded,
    lines,
    page,
    section,
    table,
)
from nexmark.report.pairs import ARMS, STAGES, batch_medians
from nexmark.store import BASELINE, CANDIDATE

_VERDICTS = (
    "metric",
    "value",
    "ratio",
    "lo",
    "hi",
    "mde",
    "pairs",
    "fresh_pairs",
    "noise",
    "bound",
)
_BUILDS = ("role", "version", "id", "source")
_PAIRS = ("stage", "number", "candidate", "baseline", "ratio")
_RUN = (
    *("arm", "stage", "number", "status", "cpu_s_per_mevent_steady"),
    *("cpu_s_per_mevent_application", "wall_s", "cores", "throughput", "batch_ms_p50"),
    *("batch_ms_p95", "batch_ms_p99", "state_rows_max", "state_bytes_max", "state_commit_ms"),
    *("late_rows", "output_rows", "digest", "other_cores", "steal_cores", "application_id"),
    "reason",
)
_BATCHES = ("id", "arm", "phase", "input_rows", "duration_ms", "state_rows", "state_bytes")
_ACKS = ("id", "state", "size", "night_id", "who", "accepted", "expires", "reason", "link")
_VALIDATIONS = ("success", "evaluated", "failures", "statistics")
_HISTORY = ("night", "build", "value", "ratio", "lo", "hi", "baseline")
_CHANGES = ("night", "build", "before", "after", "ratio", "confidence")


def render_alarm(evidence: Mapping[str, Any], *, charts: bool = True) -> str:
    """Return the evidence of a query (``in_depth.collect_query``) as a page.

    Without ``charts`` it has the same numbers, in its tables alone.
    """
    query = evidence["query"]
    parts = [
        _head(evidence),
        lines([f"Run {evidence['run']}, written {evidence['written']}"]),
        section("To measure it again", block(evidence["reproduce"], "command")),
        _pairs(evidence["pairs"], charts),
        _history(evidence, charts),
        render_attribution(evidence["attribution"]),
        render_flames(evidence["flames"]),
        _plans(evidence["plans"]),
        _confs(evidence),
        section("Builds", table(evidence["builds"], _BUILDS)),
        _over_time(evidence, charts),
        section("Results", table(evidence["validations"], _VALIDATIONS)),
        section("Accepted", table(evidence["acceptances"], (*_ACKS, "withdrawal", "covers"))),
        hosts(evidence),
        section("Gate", table(evidence["verdicts"], _VERDICTS), as_json(evidence["gate"])),
        section("Night", as_json(evidence["night"])),
    ]
    return page(f"{query} on {evidence['night']['engine']}: {_verdict(evidence)}", parts)


def _verdict(evidence: Mapping[str, Any]) -> str:
    found = next((x for x in evidence["verdicts"] if x["decides"]), None)
    if found is None:
        return "no verdict"
    return f"{found['value']} {found['ratio']:.3f}" if found["ratio"] else str(found["value"])


def _head(evidence: Mapping[str, Any]) -> str:
    said = [f"{x['metric']} {x['value']}: {x['reason']}" for x in evidence["verdicts"]]
    return box("no", [*said, *([evidence["since"]] if evidence["since"] else [])])


def _pairs(pairs: list[dict[str, Any]], charts: bool) -> str:
    runs = [run for pair in pairs for arm in ARMS if (run := pair[arm]) is not None]
    shown = [
        {
            "stage": STAGES[pair["stage"]],
            "number": pair["number"],
            **{arm: pair[f"{arm}_figure"] for arm in ARMS},
            "ratio": pair["ratio"],
        }
        for pair in pairs
    ]
    return section(
        "Pairs",
        _drawn(charts, lambda: pairs_chart(pairs), "Both arms of every pair; the lower the better"),
        table(shown, _PAIRS),
        folded("Every repetition, with its numbers", table(runs, _RUN)),
    )


def _history(evidence: Mapping[str, Any], charts: bool) -> str:
    history, changes = evidence["history"], evidence["changes"]
    return section(
        "History",
        _drawn(
            charts,
            lambda: history_chart(history, changes),
            "Ratio of every night with its interval; red triangles were slower, dashed lines "
            "are lasting changes",
        ),
        table(changes, _CHANGES) if changes else lines(["No lasting change is dated."]),
        folded(f"{len(history)} nights", table(history[::-1], _HISTORY)),
    )


def _plans(plans: Mapping[str, Any]) -> str:
    words = {None: "There are not two plans to compare.", False: "Both arms ran the same plan."}
    changed = plans.get("changed")
    parts = [lines([words[changed]]) if changed in words else diff(plans["diff"])]
    for arm in ARMS:
        if plan := plans.get(arm):
            others = f"; {plan['others']} repetitions had another" if plan["others"] else ""
            parts.append(
                folded(f"Plan of the {arm} ({plan['id'][:12]}{others})", block(plan["text"]))
            )
    return section("Plans", *parts)


def _confs(evidence: Mapping[str, Any]) -> str:
    found = evidence["conf_differences"]
    by_harness = [row for row in found if row["set_by_harness"]]
    meant = [row for row in found if not row["set_by_harness"]]
    columns = ("key", BASELINE, CANDIDATE)
    return section(
        "Spark confs",
        table(meant, columns) if meant else lines(["Both arms ran with the same confs."]),
        folded("What the benchmark itself sets apart", table(by_harness, columns)),
        folded("All that are not the defaults", as_json(evidence["confs"])),
    )


def _over_time(evidence: Mapping[str, Any], charts: bool) -> str:
    batches = batch_medians(evidence["batches"])
    return section(
        "Over time",
        _drawn(
            charts,
            lambda: over_time_chart(evidence["cpu"], batches),
            "Cores in use on each host, of the pair with the median ratio; time and state of each "
            "micro-batch, medians over the repetitions",
        ),
        folded("The micro-batches, medians over the repetitions", table(batches, _BATCHES)),
    )


def _drawn(charts: bool, draw: Callable[[], str], caption: str) -> str:
    if charts:
        return figure(draw, caption)
    return lines(["Only the worst alarms of a night have charts; the numbers are below."])


__all__ = ["render_alarm"]
