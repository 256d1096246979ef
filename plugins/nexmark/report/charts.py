"""The charts of the pages: of a night, of a query, and of the gate."""

import math
from collections.abc import Sequence
from datetime import datetime

from nexmark.evidence.ageing import AgedLine
from nexmark.evidence.alarms import Acknowledged
from nexmark.evidence.gate_health import GateHealth
from nexmark.evidence.night_evidence import NightEvidence
from nexmark.evidence.night_list import look
from nexmark.evidence.pairs import BatchMedian, CpuCurve, PairOfRuns
from nexmark.evidence.query_evidence import QueryEvidence
from nexmark.evidence.query_over_time import BuildOverNights, QueryOverTime
from nexmark.evidence.rows import ArmLatency
from nexmark.model import ARMS, FIRST_ROUND, GROWTH, Metric, Value, grouped, metric_of
from nexmark.report import vega_lite as vega
from nexmark.report.rendering import build_labels, count, moment
from nexmark.report.vega_lite import Axis, Chart
from nexmark.store.query_history import LevelChange, RatioPoint
from nexmark.verdict.verdict import Verdict

_MOST_IN_TABLE = 40
"""The largest number of points of a curve in the table of its chart; they are evenly spread."""
_BATCH = Axis("batch", "batch")
_ROUNDS = {True: "first round", False: "later rounds"}
_SHADES = (1.0, 0.7, 0.45, 0.25)
"""The opacities of verdicts of one colour; the one that needs attention most comes first."""
_STAGE_COLORS = {"first round": "candidate", "later rounds": "warn"}
_STAGE_SHAPES = {"first round": "circle", "later rounds": "diamond"}


def night_charts(night: NightEvidence) -> list[Chart]:
    """Return the chart of the ratios of all queries, the largest ratio first; [] without ratios."""
    compared = (line.row for line in night.lines if line.row.ratio)
    rows = sorted(compared, key=lambda row: -(row.ratio or 0))
    if not rows:
        return []
    data = [
        {
            "query": row.query,
            "ratio": row.ratio,
            "lo": row.lo,
            "hi": row.hi,
            "tone": _tone(row.red, ""),
        }
        for row in rows
    ]
    y = vega.field("query:N", sort=None, title=None)
    layers = [vega.one("x"), *vega.estimate("x", {"y": y}, [vega.tip("query", "query")])]
    metric = metric_of(rows[0].metric)
    chart = Chart(
        f"{metric.short} ratio of each query",
        "With its 95 % interval; a red triangle fails the night.",
        {"data": {"values": data}, "height": {"step": 18}, "layer": layers},
        ("query", "ratio", "from", "to"),
        tuple((row.query, row.ratio, row.lo, row.hi) for row in rows),
    )
    return [chart]


def query_charts(evidence: QueryEvidence) -> list[Chart]:
    """Return the charts of the pairs, latencies and history of a query, as far as there are any."""
    charts = []
    if evidence.metric.name != GROWTH and any(pair.ratio for pair in evidence.pairs):
        charts.append(pairs_chart(evidence.pairs, evidence.metric, evidence.verdict))
        charts.append(arms_chart(evidence.pairs, evidence.metric))
    if evidence.latencies:
        charts.append(latency_chart(evidence.latencies))
    by_name = grouped(evidence.ageing, lambda line: line.name)
    charts += [ageing_chart(lines) for lines in by_name.values() if _says_something(lines)]
    if any(point.verdict.ratio is not None for point in evidence.points):
        charts.append(history_chart(evidence.points, evidence.changes, evidence.acks))
    return charts


def time_charts(evidence: QueryEvidence) -> list[Chart]:
    """Return the charts of the repetitions of a query over time: CPU, micro-batches and state."""
    by_host = grouped(evidence.cpu, lambda curve: curve.host)
    charts = [cpu_chart(host, curves) for host, curves in by_host.items()]
    if evidence.batches:
        charts += batch_charts(evidence.batches)
    if any(batch.commit_ms for batch in evidence.batches):
        charts.append(commit_chart(evidence.batches))
    return charts


def _says_something(lines: Sequence[AgedLine]) -> bool:
    """Tell whether a figure of a soak has a limit, or has changed at all."""
    return lines[0].limited or len({value for line in lines for _, value in line.points}) > 1


def _part_words(part: tuple[str, float, float]) -> str:
    name, grown, share = part
    return f"{name} {grown:+,.2f} ({100 * share:.0f} %)"


def ageing_chart(lines: Sequence[AgedLine]) -> Chart:
    """Return the chart of one figure of both arms of a soak over the batch number."""
    title, unit = lines[0].name[:1].upper() + lines[0].name[1:], lines[0].unit
    points = [
        {"arm": line.arm, "batch": batch, "value": round(value, 4)}
        for line in lines
        for batch, value in line.points
    ]
    growths = [
        f"{line.arm} {slope:+.2f} ({lo:.2f} to {hi:.2f}) {line.growth_unit}".rstrip()
        for line in lines
        for slope, lo, hi in line.growths
    ]
    said = "; ".join(growths) or "too few samples after the warm-up"
    parts = [
        f"Most of it in the {line.arm}: {', '.join(map(_part_words, line.parts))}."
        for line in lines
        if line.parts
    ]
    vertical = Axis("value", f"{title}, {unit}" if unit else title)
    return Chart(
        title,
        " ".join(
            [f"Between batches, the median of an arm. Growth in 1,000 batches: {said}.", *parts]
        ),
        vega.lines(points, _BATCH, vertical, dots=True),
        ("arm", "batch", unit or "number"),
        tuple(tuple(point.values()) for point in points),
    )


def latency_chart(latencies: Sequence[ArmLatency]) -> Chart:
    """Return the chart of the latencies of both arms by percentile, on logarithmic axes."""
    points = [
        {"arm": each.arm, "one_in": round(100 / (100 - at), 4), "ms": max(value, 0.5)}
        for each in latencies
        for at, value in each.curve
    ]
    spec = vega.lines(points, Axis("one_in", "percentile"), Axis("ms", "milliseconds"))
    percents = "100 * (1 - 1 / datum.value)"
    axis = {"values": [1, 2, 10, 100, 1000, 10_000], "labelExpr": f"format({percents}, '.4~g')"}
    spec["encoding"]["x"] |= {"scale": vega.LOG, "axis": axis}
    spec["encoding"]["y"] |= {"scale": vega.LOG}
    return Chart(
        "Latency",
        "From when an event was due to when its row was there, of all repetitions of an arm.",
        spec,
        ("arm", "repetitions", "events", "p50 ms", "p90", "p99", "p99.9", "longest"),
        tuple(
            (each.arm, each.repetitions, each.events, *each.percentiles, each.longest)
            for each in latencies
        ),
    )


def pairs_chart(pairs: Sequence[PairOfRuns], metric: Metric, verdict: Verdict | None) -> Chart:
    """Return the chart of the ratios of all pairs, over the interval of the verdict."""
    complete = [(pair, pair.ratio) for pair in pairs if pair.ratio is not None]
    data = [
        {
            "place": at,
            "label": pair.label,
            "stage": _ROUNDS[pair.stage == FIRST_ROUND],
            "ratio": _rounded(ratio),
        }
        for at, (pair, ratio) in enumerate(complete, 1)
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
            (
                pair.label,
                pair.candidate_figure,
                pair.baseline_figure,
                pair.ratio,
                pair.wall_ratio,
            )
            for pair in pairs
        ),
    )


def arms_chart(pairs: Sequence[PairOfRuns], metric: Metric) -> Chart:
    """Return the chart of the figures of both arms of every pair, joined by a line."""
    figures = [
        (pair.label, arm, figure)
        for pair in pairs
        for arm, figure in zip(ARMS, (pair.candidate_figure, pair.baseline_figure), strict=True)
        if figure is not None
    ]
    data = [{"pair": label, "arm": arm, "figure": figure} for label, arm, figure in figures]
    order = [pair.label for pair in pairs]
    unit = metric.unit if metric.decides else metric.heading
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
        tuple(figures),
    )


def history_chart(
    points: Sequence[RatioPoint], changes: Sequence[LevelChange], acks: Sequence[Acknowledged]
) -> Chart:
    """Return the chart of the ratio night by night, with lasting changes and acceptances."""
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
    dated = [
        {
            "night": _stamp(at := level.first.started),
            "label": f"{moment(at)[:10]}: {level.change.before:.3f} → {level.change.after:.3f}",
        }
        for level in changes
    ]
    accepted = [
        {
            "night": _stamp(at := row.accepted),
            "label": f"{moment(at)[:10]} by {row.who}: {row.reason}",
        }
        for row in (ack.row for ack in acks)
        if row.accepted >= points[0].started
    ]
    axis = {"format": "%b %-d", "tickCount": {"interval": "day"} if len(data) < 9 else 8}
    time = vega.field("night:T", title=None, scale={"type": "utc"}, axis=axis)
    tips = [vega.tip("label", "night"), vega.tip("verdict", "verdict")]
    layers = [vega.one("y"), *vega.estimate("y", {"x": time}, tips)]
    layers += vega.marks(dated, "change", "warn", [4, 3], time)
    layers += vega.marks(accepted, "accepted", "good", [1, 3], time)
    return Chart(
        "History of the paired ratio",
        f"Candidate by baseline in {count(len(data), 'night')}; "
        f"{count(len(dated), 'lasting change')}, {count(len(accepted), 'acceptance')}.",
        vega.layered(data, layers),
        ("night", "verdict", "ratio", "from", "to", "build", "baseline"),
        tuple(
            (
                moment(point.started),
                seen.word,
                verdict.ratio,
                verdict.lo,
                verdict.hi,
                point.build_name,
                point.baseline_name,
            )
            for point, verdict, seen in rows[::-1]
        ),
    )


def over_time_charts(page: QueryOverTime) -> list[Chart]:
    """Return the charts of a query over all nights: its ratio by night, its figures by build."""
    charts = []
    if any(point.verdict.ratio is not None for point in page.points):
        levels = [traced.level for traced in reversed(page.changes)]
        charts.append(history_chart(page.points, levels, page.acks))
    if any(one.figures for one in page.builds):
        charts.append(builds_chart(page.builds, page.metric))
    return charts


def builds_chart(builds: Sequence[BuildOverNights], metric: Metric) -> Chart:
    """Return the chart of the candidate's figures by build, in the order of the first nights."""
    measured = [(one, one.figures) for one in builds if one.figures is not None]
    labels = build_labels([one.build for one, _ in measured])
    data = [
        {
            "build": labels[one.build.id],
            "figure": _rounded(figures.median),
            "low": _rounded(figures.low),
            "high": _rounded(figures.high),
            "nights": one.nights,
        }
        for one, figures in measured
    ]
    unit = metric.unit if metric.decides else metric.heading
    order = [row["build"] for row in data]
    axis = {"labelAngle": -50, "labelLimit": 150, "labelOverlap": "parity", "grid": False}
    place = {"x": vega.field("build:N", sort=order, title=None, axis=axis)}
    figure = vega.field("figure:Q", title=unit, scale={"zero": False})
    ends = {"y": vega.field("low:Q", title=unit), "y2": {"field": "high"}}
    tips = [vega.tip("build", "build"), vega.tip("nights", "nights")]
    heading = f"median, {metric.heading}"
    tips.append(vega.tip("figure", heading, ".4~g"))
    layers = [
        vega.layer("rule", {**place, **ends}, color="candidate", opacity=0.6, strokeWidth=1.4),
        vega.layer("line", {**place, "y": figure}, color="muted", strokeWidth=1),
        vega.layer(
            "point", {**place, "y": figure, "tooltip": tips}, filled=True, size=50, opacity=1
        ),
    ]
    return Chart(
        "Figures by build",
        f"{unit} of the candidate, the median over the nights of each build, with the smallest and "
        f"the largest; {count(len(data), 'build')} in the order of their first nights.",
        vega.layered(data, layers),
        ("build", "origin", "first night", "nights", heading, "smallest", "largest", "ratio"),
        tuple(
            (
                labels[one.build.id],
                one.build.source,
                moment(one.first.started)[:10],
                one.nights,
                figures.median,
                figures.low,
                figures.high,
                one.ratio,
            )
            for one, figures in measured[::-1]
        ),
    )


def cpu_chart(host: str, curves: Sequence[CpuCurve]) -> Chart:
    """Return the chart of the cores that a repetition of each arm used on one host over time."""
    readings = [
        (curve.arm, at, used)
        for curve in curves
        for at, used in zip(curve.seconds, curve.cores, strict=True)
    ]
    points = [{"arm": arm, "seconds": at, "cores": used} for arm, at, used in readings]
    time = Axis("seconds", "seconds from the start of the query")
    spec = vega.lines(points, time, Axis("cores", "cores"))
    by_arm = grouped(readings, lambda reading: reading[0]).values()
    shown = [
        reading
        for of_arm in by_arm
        for reading in of_arm[:: max(1, -(-len(of_arm) // _MOST_IN_TABLE))]
    ]
    return Chart(
        f"CPU on {host}",
        "Cores that executors and their Python workers used, of the pair with the median ratio.",
        spec,
        ("arm", "seconds", "cores"),
        tuple(shown),
    )


def batch_charts(batches: Sequence[BatchMedian]) -> list[Chart]:
    """Return the charts of the micro-batches of both arms: durations, and the state if any."""
    points = [
        {
            "arm": batch.arm,
            "batch": batch.id,
            "phase": batch.phase,
            "input": batch.input_rows,
            "seconds": None if batch.duration_ms is None else round(batch.duration_ms / 1000, 4),
            "rows": batch.state_rows,
            "megabytes": None if batch.state_bytes is None else round(batch.state_bytes / 1e6, 4),
        }
        for batch in batches
    ]
    seconds = Axis("seconds", "seconds, median of the repetitions")
    durations = Chart(
        "Batch durations",
        "How long each micro-batch took, the median over the repetitions of an arm.",
        vega.lines(points, _BATCH, seconds, dots=True),
        ("arm", "batch", "phase", "input rows", "seconds", "state rows", "state MB"),
        tuple(tuple(point.values()) for point in points),
    )
    growth = Chart(
        "State growth",
        "Memory of the state store after each batch, the median over the repetitions of an arm.",
        vega.lines(points, _BATCH, Axis("megabytes", "state, MB"), dots=True),
        ("arm", "batch", "state MB", "state rows"),
        tuple(
            (point["arm"], point["batch"], point["megabytes"], point["rows"]) for point in points
        ),
    )
    stateful = any(batch.state_rows or batch.state_bytes for batch in batches)
    return [durations, growth] if stateful else [durations]


def commit_chart(batches: Sequence[BatchMedian]) -> Chart:
    """Return the chart of how long each micro-batch took to commit and to restore the state."""
    points = [
        {"arm": batch.arm, "batch": batch.id, "what": what, "seconds": round(time / 1000, 4)}
        for batch in batches
        for what, time in (("commit", batch.commit_ms), ("restore", batch.restore_ms))
        if time is not None
    ]
    commits, restores = (
        [point for point in points if point["what"] == what] for what in ("commit", "restore")
    )
    lines = vega.lines(commits, _BATCH, Axis("seconds", "seconds, summed over tasks"), dots=True)
    tips = [*lines["encoding"]["tooltip"], vega.tip("what", "of")]
    where = {name: lines["encoding"][name] for name in ("x", "y", "color")} | {"tooltip": tips}
    layers = [lines, vega.layer("point", where, restores, shape="triangle-up", size=90)]
    return Chart(
        "Commit and restore",
        "How long state stores took to commit each batch (lines), and to be loaded in it "
        "(triangles), the median over the repetitions of an arm.",
        {"height": lines.pop("height"), "layer": layers},
        ("arm", "batch", "of", "seconds"),
        tuple((point["arm"], point["batch"], point["what"], point["seconds"]) for point in points),
    )


def verdicts_chart(gate: GateHealth) -> Chart | None:
    """Return the chart of the number of verdicts by value in each night; None without verdicts."""
    bars = [
        {
            "place": place,
            "night": moment(night.started),
            "verdict": value,
            "number": number,
            "rank": look(value).rank,
        }
        for place, (night, tally) in enumerate(gate.tallies)
        for value, number in tally.values.items()
    ]
    if not bars:
        return None
    number = vega.tip("number", "queries")
    values = {value for _, tally in gate.tallies for value in tally.values}
    by_attention = sorted(values, key=lambda value: value.attention)
    tones = {str(value): look(value).tone for value in by_attention}
    of_tone = grouped(tones, tones.__getitem__)
    shades = {value: _SHADES[of_tone[tone].index(value)] for value, tone in tones.items()}
    encoding = {
        "x": vega.field("place:O", title="night", axis=None),
        "y": vega.field("number:Q", title="queries", stack=True),
        "color": vega.by("verdict", tones, vega.LEGEND, ordered=True),
        "opacity": vega.by("verdict", shades, vega.LEGEND, ordered=True),
        "order": vega.field("rank:Q"),
        "tooltip": [vega.tip("night", "night"), vega.tip("verdict", "verdict"), number],
    }
    return Chart(
        "Verdicts by night",
        "How many queries had which verdict, the oldest night on the left.",
        vega.layer("bar", encoding, bars, width={"band": 1}) | {"height": vega.HEIGHT},
        ("night", "verdict", "queries"),
        tuple((bar["night"], bar["verdict"], bar["number"]) for bar in bars[::-1]),
    )


def _tone(red: bool, tone: str) -> str:
    return "bad" if red else "good" if tone == "good" else "calm"


def _rounded(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, 5)


def _stamp(at: datetime) -> int:
    """Return a moment as Vega-Lite reads it: in milliseconds since 1970."""
    return round(at.timestamp() * 1000)
