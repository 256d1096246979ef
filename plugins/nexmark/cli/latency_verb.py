"""The verb that measures latency."""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nexmark.cli.shared_options import (
    Conf,
    Engine,
    Out,
    build_of,
    check_new,
    confs_of,
    number_option,
    text_option,
    whole,
)
from nexmark.model import grouped
from nexmark.terminal import columns, say
from nexmark_jobs.host.leases import write_whole
from nexmark_jobs.host.processes import OWNER_VARIABLE

if TYPE_CHECKING:
    from nexmark.latency.figures import LatencyFigures

_TRIGGERS = ("micro-batch", "real-time")
_HEADS = ("query", "trigger", "rate/s", "p50", "p90", "p99", "p99.9", "max", "events", "lag p99")


def latency(
    query: Annotated[str, text_option("q0,q17: one or more.")] = "q0",
    rate: Annotated[
        str,
        text_option(
            "Events per second: 500,1000; or 500-16000: doubled until a query falls behind."
        ),
    ] = "1000",
    trigger: Annotated[str, text_option("micro-batch, real-time, or both.")] = "micro-batch",
    seconds: Annotated[int, number_option(5, 3600, "S")] = 30,
    warm_up: Annotated[int, number_option(0, 600, "S", "Not counted.")] = 10,
    engine: Engine = None,
    conf: Conf = None,
    out: Out = None,
) -> int:
    """Measure the latency of queries from Kafka to Kafka, at fixed rates of events.

    Starts a broker and ends it. 0 if every figure can be believed, 1 if not.
    """
    from nexmark.kafka import broker
    from nexmark.kafka.jars import connector
    from nexmark.kafka.topics import KafkaCluster
    from nexmark.latency.matching import MATCHINGS
    from nexmark.latency.measuring import PacedRuns

    queries = _listed("--query", query, tuple(MATCHINGS))
    triggers = _listed("--trigger", trigger, _TRIGGERS)
    rates, until_behind = _rates(rate)
    check_new(out)
    _, build = build_of(engine, say)
    _check_real_time(queries, triggers, build.version)
    brokers = broker.of_this_machine("latency")
    found: list[LatencyFigures] = []
    try:
        kafka = KafkaCluster(brokers.up(1, broker.LATENCY_PORT, say))
        with tempfile.TemporaryDirectory(prefix="nexmark-latency-") as directory:
            jars, mark = connector(build.version, say), {OWNER_VARIABLE: brokers.mark}
            runs = PacedRuns(build, jars, kafka, mark, Path(directory), say)
            for each, how in product(queries, triggers):
                for at in rates:
                    found.append(runs.run(each, how, at, seconds, warm_up, confs_of(conf)))
                    say(_line(found[-1]))
                    if until_behind and not _sustained(found[-1]):
                        break
    finally:
        brokers.down()
    print(f"\nSpark {build.version}; milliseconds\n{table(found)}")
    if until_behind:
        print(f"\n{sustained(found)}")
    if out is not None:
        told = {"spark_version": build.version, "runs": [asdict(each) for each in found]}
        write_whole(out, json.dumps(told, indent=1) + "\n")
    return int(any(each.invalid for each in found))


def table(found: list[LatencyFigures]) -> str:
    """A line for each run."""
    return columns((*_HEADS, "remark"), [_row(each) for each in found])


def sustained(found: list[LatencyFigures]) -> str:
    """For each query and trigger the highest rate that it keeps up with."""
    lines = []
    for (query, trigger), runs in grouped(found, lambda each: (each.query, each.trigger)).items():
        kept = [each.rate for each in runs if _sustained(each)]
        rate = f"{max(kept):,}/s" if kept else f"below {runs[0].rate:,}/s"
        more = ", and maybe more" if all(each.keeps_up for each in runs) else ""
        lines.append(f"{query} {trigger}: sustainable rate {rate}{more}")
    return "\n".join(lines)


def _sustained(run: LatencyFigures) -> bool:
    """Whether the query had its rate, and kept up with it."""
    return run.keeps_up and not run.invalid


def _rates(text: str) -> tuple[list[int], bool]:
    """The rates of `--rate`, and whether to stop where a query falls behind."""
    number = whole(1, 1_000_000)
    first, dash, last = text.partition("-")
    if not dash:
        return [number(each) for each in text.split(",")], False
    low, high = number(first), number(last)
    if low > high:
        raise typer.BadParameter(f"--rate: {text!r} goes down; write it as 500-16000")
    return [low * 2**n for n in range((high // low).bit_length())], True


def _check_real_time(queries: list[str], triggers: list[str], version: str) -> None:
    """Refuse, before anything is started, what Spark cannot run in Real-Time Mode."""
    from nexmark_jobs.real_time import refusal

    for query in queries if "real-time" in triggers else ():
        if refused := refusal(query, version):
            raise typer.BadParameter(
                f"--trigger: {query} cannot run in Real-Time Mode on Spark {version}: "
                f"{refused.why}; take --trigger micro-batch"
            )


def _row(each: LatencyFigures) -> list[str]:
    behind = "" if each.keeps_up else "falls behind"
    remark = f"INVALID: {each.invalid}" if each.invalid else behind
    numbers = [*each.percentiles, each.longest, each.events]
    return [
        *(each.query, each.trigger, f"{each.rate:,}"),
        *(f"{number:,}" for number in numbers),
        *(f"{each.lag_p99:.1f}", remark),
    ]


def _line(each: LatencyFigures) -> str:
    p50, _, p99, _ = each.percentiles
    return f"{each.query} {each.trigger} at {each.rate:,}/s: p50 {p50:,} ms, p99 {p99:,} ms"


def _listed(option: str, text: str, known: tuple[str, ...]) -> list[str]:
    found = list(known) if text == "both" and "micro-batch" in known else text.split(",")
    for each in found:
        if each not in known:
            raise typer.BadParameter(f"{option}: {each!r} is not known; take {', '.join(known)}")
    return found
