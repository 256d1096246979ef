"""The charts of the pages: of a night, of a query, of the gate."""

import math
from collections.abc import Sequence
from datetime import datetime

from nexmark.evidence.alarms import Acknowledged
from nexmark.evidence.gate_health import GateHealth
from nexmark.evidence.night_evidence import NightEvidence
from nexmark.evidence.night_list import look
from nexmark.evidence.pairs import BatchMedian, CpuCurve, PairOfRuns
from nexmark.evidence.query_evidence import QueryEvidence
from nexmark.evidence.rows import ArmLatency
from nexmark.model import ARMS, FIRST_ROUND, Metric, Value, grouped, metric_of
from nexmark.report import vega_lite as vega
from nexmark.report.rendering import count, moment
from nexmark.report.vega_lite import Chart
from nexmark.store.query_history import LevelChange, RatioPoint
from nexmark.verdict.verdict import Verdict

_MOST_IN_TABLE = 40  # points of a curve, evenly spread
_ROUNDS = {True: "first round", False: "later rounds"}
_STAGE_COLORS = {"first round": "candidate", "later rounds": "warn"}
_STAGE_SHAPES = {"first round": "circle", "later rounds": "diamond"}


def night_charts(night: NightEvidence) -> list[Chart]:
    """Return the ratio of every query with its interval, the largest first."""
    found = (line.row for line in night.lines if line.row.ratio)
    lines = sorted(found, key=lambda row: -(row.ratio or 0))
    if not lines:
        return []
    data = [
        {"query": x.query, "ratio": x.ratio, "lo": x.lo, "hi": x.hi, "tone": _tone(x.red, "")}
        for x in lines
    ]
    y = vega.field("query:N", sort=None, title=None)
    layers = [vega.one("x"), *vega.estimate("x", {"y": y}, [vega.tip("query", "query")])]
    metric = metric_of(lines[0].metric)
    chart = Chart(
        f"{'CPU' if metric.bases else metric.heading} ratio of each query",
        "With its 95 % interval; a red triangle fails the night.",
        {"data": {"values": data}, "height": {"step": 18}, "layer": layers},
        ("query", "ratio", "from", "to"),
        tuple((x.query, x.ratio, x.lo, x.hi) for x in lines),
    )
    return [chart]


def query_charts(found: QueryEvidence) -> list[Chart]:
    """Return the pairs of a query and its history, as far as they are there."""
    charts = []
    if any(pair.ratio for pair in found.pairs):
        charts.append(pairs_chart(found.pairs, found.metric, found.verdict))
        charts.append(arms_chart(found.pairs, found.metric))
    if found.latencies:
        charts.append(latency_chart(found.latencies))
    if any(point.verdict.ratio is not None for point in found.points):
        charts.append(history_chart(found.points, found.changes, found.acks))
    return charts


def time_charts(found: QueryEvidence) -> list[Chart]:
    """Return what happened within the repetitions of a query: CPU, batches, state."""
    by_host = grouped(found.cpu, lambda curve: curve.host)
    charts = [cpu_chart(host, curves) for host, curves in by_host.items()]
    if found.batches:
        charts += batch_charts(found.batches)
    if any(batch.commit_ms for batch in found.batches):
        charts.append(commit_chart(found.batches))
    return charts


def latency_chart(latencies: Sequence[ArmLatency]) -> Chart:
    """Return the latencies of both arms over the percentiles, on log axes."""
    points = [
        {"arm": each.arm, "one_in": round(100 / (100 - at), 4), "ms": max(value, 0.5)}
        for each in latencies
        for at, value in each.curve
    ]
    spec = vega.lines(points, "one_in", "percentile", "ms", "milliseconds")
    percents = "100 * (1 - 1 / datum.value)"
    axis = {"values": [1, 2, 10, 100, 1000, 10_000], "labelExpr": f"format({percents}, '.4~g')"}
    spec["encoding"]["x"] |= {"scale": vega.LOG, "axis": axis}
    spec["encoding"]["y"] |= {"scale": vega.LOG}
    return Chart(
        "Latency",
        "From when an event was due to when its row was there, of all repetitions of an arm.",
        spec,
        ("arm", "repetitions", "events", "p50 ms", "p90", "p99", "p99.9", "longest"),
        tuple((x.arm, x.repetitions, x.events, *x.percentiles, x.longest) for x in latencies),
    )


def pairs_chart(pairs: Sequence[PairOfRuns], metric: Metric, verdict: Verdict | None) -> Chart:
    """Return candidate / baseline of each pair, over the interval of the verdict."""
    known = [(pair, pair.ratio) for pair in pairs if pair.ratio is not None]
    data = [
        {
            "place": at,
            "label": x.label,
            "stage": _ROUNDS[x.stage == FIRST_ROUND],
            "ratio": _rounded(ratio),
        }
        for at, (x, ratio) in enumerate(known, 1)
    ]
    encoding = {
        "x": vega.field("place:O", title="pair, in order", axis={"labelAngle": 0}),
        "y": vega.ratio_axis("ratio"),
        "color": vega.by("stage", _STAGE_COLORS, vega.LEGEND),
        "shape": vega.by("stage", _STAGE_SHAPES, vega.LEGEND),
        "tooltip": [vega.tip("label", "pair"), vega.tip("ratio", "ratio", ".3f")],
    }
    layers = [vega.one("y"), vega.layer("point", encoding, size=90, filled=True, opacity=1)]
    if verdict is not None and verdict.lo is not None and verdict.hi is not None:
        band = {"y": vega.field("low:Q", scale=vega.LOG), "y2": {"field": "high"}}
        interval = [{"low": verdict.lo, "high": verdict.hi}]
        layers.insert(0, vega.layer("rect", band, interval, color="band", opacity=0.5))
    return Chart(
        "Pairs",
        f"Candidate by baseline of {count(len(data), 'pair')}; "
        "the band is the 95 % interval of the verdict.",
        vega.layered(data, layers),
        ("pair", f"candidate, {metric.heading}", "baseline", "ratio", "ratio of wall time"),
        tuple(
            (x.label, x.candidate_figure, x.baseline_figure, x.ratio, x.wall_ratio) for x in pairs
        ),
    )


def arms_chart(pairs: Sequence[PairOfRuns], metric: Metric) -> Chart:
    """Return both arms of every pair, joined by a line."""
    data = [
        {"pair": pair.label, "arm": arm, "figure": figure}
        for pair in pairs
        for arm, figure in zip(ARMS, (pair.candidate_figure, pair.baseline_figure), strict=True)
        if figure is not None
    ]
    order = [pair.label for pair in pairs]
    unit = metric.unit if metric.bases else metric.heading
    title = "pair (2.1: the first of round 2)"
    place = {
        "x": vega.field("pair:N", sort=order, title=title, axis={"labelAngle": 0, "grid": False}),
        "y": vega.field("figure:Q", title=unit, scale={"zero": False}),
    }
    arms = {"color": vega.arms_by(vega.COLORS), "shape": vega.arms_by(vega.SHAPES)}
    tips = [vega.tip("arm", "arm"), vega.tip("figure", metric.heading, ".4~g")]
    layers = [
        vega.layer("line", {**place, "detail": {"field": "pair"}}, color="muted"),
        vega.layer("point", {**place, **arms, "tooltip": tips}, filled=True, size=70, opacity=1),
    ]
    return Chart(
        "Both arms of every pair",
        f"{unit}; the lower the better.",
        vega.layered(data, layers),
        ("pair", "arm", metric.heading),
        tuple((x["pair"], x["arm"], x["figure"]) for x in data),
    )


def history_chart(
    points: Sequence[RatioPoint], changes: Sequence[LevelChange], acks: Sequence[Acknowledged]
) -> Chart:
    """Return the ratio night by night, with change points and acceptances."""
    rows = [
        (point, verdict, look(verdict.value, known=verdict.acceptance is not None))
        for point, verdict in ((point, point.verdict) for point in points)
    ]
    data = [
        {
            "night": _stamp(point.started),
            "label": moment(point.started),
            "verdict": seen.word,
            "tone": _tone(seen.tone == "bad", seen.tone if verdict.value != Value.OK else ""),
            "ratio": _rounded(verdict.ratio),
            "lo": _rounded(verdict.lo),
            "hi": _rounded(verdict.hi),
        }
        for point, verdict, seen in rows
        if verdict.ratio is not None
    ]
    levels = [(x.first.started, f"{x.change.before:.3f} → {x.change.after:.3f}") for x in changes]
    dated = [{"night": _stamp(at), "label": f"{moment(at)[:10]}: {x}"} for at, x in levels]
    known = [
        {"night": _stamp(at := x.accepted), "label": f"{moment(at)[:10]} by {x.who}: {x.reason}"}
        for x in (ack.row for ack in acks)
        if x.accepted >= points[0].started
    ]
    axis = {"format": "%b %-d", "tickCount": {"interval": "day"} if len(data) < 9 else 8}
    time = vega.field("night:T", title=None, scale={"type": "utc"}, axis=axis)
    tips = [vega.tip("label", "night"), vega.tip("verdict", "verdict")]
    layers = [vega.one("y"), *vega.estimate("y", {"x": time}, tips)]
    layers += vega.marks(dated, "change", "warn", [4, 3], time)
    layers += vega.marks(known, "accepted", "good", [1, 3], time)
    return Chart(
        "History of the paired ratio",
        f"Candidate by baseline in {count(len(data), 'night')}; "
        f"{count(len(dated), 'lasting change')}, {count(len(known), 'acceptance')}.",
        vega.layered(data, layers),
        ("night", "verdict", "ratio", "from", "to", "build", "baseline"),
        tuple(
            (
                moment(point.started),
                seen.word,
                verdict.ratio,
                verdict.lo,
                verdict.hi,
                verdict.build[:19],
                point.baseline[:19],
            )
            for point, verdict, seen in rows[::-1]
        ),
    )


def cpu_chart(host: str, curves: Sequence[CpuCurve]) -> Chart:
    """Return the cores in use over time on one host, of one repetition of each arm."""
    points = [
        {"arm": curve.arm, "seconds": at, "cores": used}
        for curve in curves
        for at, used in zip(curve.seconds, curve.cores, strict=True)
    ]
    spec = vega.lines(points, "seconds", "seconds from the start of the query", "cores", "cores")
    arms = grouped(points, lambda point: point["arm"]).values()
    shown = [x for own in arms for x in own[:: max(1, -(-len(own) // _MOST_IN_TABLE))]]
    return Chart(
        f"CPU on {host}",
        "Cores that executors and their Python workers used, of the pair with the median ratio.",
        spec,
        ("arm", "seconds", "cores"),
        tuple((x["arm"], x["seconds"], x["cores"]) for x in shown),
    )


def batch_charts(batches: Sequence[BatchMedian]) -> list[Chart]:
    """Return the median duration of each batch by arm, and the size of the state, if any."""
    points = [
        {
            **{"arm": x.arm, "batch": x.id, "phase": x.phase, "input": x.input_rows},
            "seconds": None if x.duration_ms is None else round(x.duration_ms / 1000, 4),
            "rows": x.state_rows,
            "megabytes": None if x.state_bytes is None else round(x.state_bytes / 1e6, 4),
        }
        for x in batches
    ]
    seconds = "seconds, median of the repetitions"
    durations = Chart(
        "Batch durations",
        "How long each micro-batch took, the median over the repetitions of an arm.",
        vega.lines(points, "batch", "batch", "seconds", seconds, True),
        ("arm", "batch", "phase", "input rows", "seconds", "state rows", "state MB"),
        tuple(tuple(point.values()) for point in points),
    )
    growth = Chart(
        "State growth",
        "Memory of the state store after each batch, the median over the repetitions of an arm.",
        vega.lines(points, "batch", "batch", "megabytes", "state, MB", True),
        ("arm", "batch", "state MB", "state rows"),
        tuple((x["arm"], x["batch"], x["megabytes"], x["rows"]) for x in points),
    )
    stateful = any(x.state_rows or x.state_bytes for x in batches)
    return [durations, growth] if stateful else [durations]


def commit_chart(batches: Sequence[BatchMedian]) -> Chart:
    """Return how long the commit of the state took in each batch, and to load it, by arm."""
    points = [
        {"arm": x.arm, "batch": x.id, "what": what, "seconds": round(time / 1000, 4)}
        for x in batches
        for what, time in (("commit", x.commit_ms), ("restore", x.restore_ms))
        if time is not None
    ]
    commits, restores = ([x for x in points if x["what"] == y] for y in ("commit", "restore"))
    lines = vega.lines(commits, "batch", "batch", "seconds", "seconds, summed over tasks", True)
    tips = [*lines["encoding"]["tooltip"], vega.tip("what", "of")]
    where = {name: lines["encoding"][name] for name in ("x", "y", "color")} | {"tooltip": tips}
    layers = [lines, vega.layer("point", where, restores, shape="triangle-up", size=90)]
    return Chart(
        "Commit and restore",
        "How long state stores took to commit each batch (lines), and to be loaded in it "
        "(triangles), the median over the repetitions of an arm.",
        {"height": lines.pop("height"), "layer": layers},
        ("arm", "batch", "of", "seconds"),
        tuple((x["arm"], x["batch"], x["what"], x["seconds"]) for x in points),
    )


def verdicts_chart(gate: GateHealth) -> Chart | None:
    """Return the number of verdicts by value, night by night; None where there are none."""
    counts = [
        {
            **{"place": place, "night": moment(night.started), "verdict": value},
            **{"number": number, "tone": look(value).tone, "rank": look(value).rank},
        }
        for place, (night, tally) in enumerate(gate.tallies)
        for value, number in tally.values.items()
    ]
    if not counts:
        return None
    number, tones = vega.tip("number", "queries"), ("bad", "warn", "uncompared", "good")
    encoding = {
        "x": vega.field("place:O", title="night", axis=None),
        "y": vega.field("number:Q", title="queries", stack=True),
        "color": vega.by("tone", {tone: tone for tone in tones}, vega.LEGEND),
        "order": vega.field("rank:Q"),
        "tooltip": [vega.tip("night", "night"), vega.tip("verdict", "verdict"), number],
    }
    return Chart(
        "Verdicts by night",
        "How many queries had which verdict, the oldest night on the left.",
        vega.layer("bar", encoding, counts, width={"band": 1}) | {"height": vega.HEIGHT},
        ("night", "verdict", "queries"),
        tuple((x["night"], x["verdict"], x["number"]) for x in counts[::-1]),
    )


def _tone(red: bool, tone: str) -> str:
    return "bad" if red else "good" if tone == "good" else "calm"


def _rounded(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, 5)


def _stamp(at: datetime) -> int:
    """Return a moment as Vega-Lite reads it: milliseconds."""
    return round(at.timestamp() * 1000)
