"""The verbs about Kafka: a broker on this machine, its topics, the jars of Spark's connector."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from nexmark.cli.shared_options import given, whole
from nexmark.errors import NexmarkError
from nexmark.terminal import columns, say
from nexmark_jobs.host.leases import write_whole
from nexmark_jobs.host.processes import OWNER_VARIABLE

kafka = typer.Typer(help="A Kafka broker to test with, its topics, and Spark's connector.")

_Servers = Annotated[
    str | None,
    typer.Option(callback=given, help="HOST:PORT,... (default: the broker of this machine)."),
]
_PortOption = Annotated[
    int | None, typer.Option(parser=whole(1, 65000), metavar="N", help="Of the first broker.")
]


@kafka.command()
def up(
    brokers: Annotated[int, typer.Option(parser=whole(1, 3), metavar="1|3")] = 1,
    port: _PortOption = None,
) -> None:
    """Start Apache Kafka on 127.0.0.1 and wait until it answers; its storage is in .nexmark."""
    from nexmark.kafka import broker

    if brokers not in broker.COUNTS:
        raise typer.BadParameter(f"--brokers: {brokers} is not 1 or 3")
    machine = broker.of_this_machine()
    servers = machine.up(brokers, broker.PORT if port is None else port, say)
    print(f"Kafka is ready at {servers}; end it with: nexmark kafka down")


@kafka.command()
def down() -> None:
    """End the brokers of this machine and remove their storage."""
    from nexmark.kafka import broker

    ended = broker.of_this_machine().down()
    print(f"brokers ended: {len(ended)}; no storage is left" if ended else "no broker was running")


@kafka.command()
def status() -> int:
    """Print a line for each broker of this machine and each topic; 0 if all answer."""
    from nexmark.kafka import broker
    from nexmark.kafka.topics import KafkaCluster

    found = broker.of_this_machine().status()
    if not found:
        print("no broker is running; start one with: nexmark kafka up")
        return 1
    rows = [
        [
            str(each.broker.number),
            f"127.0.0.1:{each.broker.port}",
            "ready" if each.answers else "does not answer" if each.process else "ended",
            str(each.process.pid) if each.process else "",
            f"{each.resident / 1e6:,.0f} MB",
            f"{each.stored / 1e6:,.0f} MB",
            str(each.log),
        ]
        for each in found
    ]
    print(columns(("broker", "address", "state", "pid", "memory", "storage", "log"), rows))
    if not all(each.answers for each in found):
        return 1
    topics = KafkaCluster(f"127.0.0.1:{found[0].broker.port}").topics()
    if topics:
        lines = [[x.name, str(x.partitions), str(x.replicas), f"{x.records:,}"] for x in topics]
        print()
        print(columns(("topic", "partitions", "replicas", "records"), lines))
    return 0


@kafka.command()
def fill(
    events: Annotated[Path, typer.Option(help="A file of JSON lines, or a directory of them.")],
    topic: Annotated[str, typer.Option(callback=given, help="A new topic.")],
    partitions: Annotated[int, typer.Option(parser=whole(1, 1000), metavar="P")] = 8,
    replace: Annotated[bool, typer.Option("--replace", help="Remove such a topic first.")] = False,
    bootstrap_servers: _Servers = None,
) -> None:
    """Write recorded events to a new topic: event n to partition n mod P."""
    from nexmark.kafka import filling
    from nexmark.kafka.topics import KafkaCluster

    def progress(written: int) -> None:
        say(f"{written:,} events")

    servers = bootstrap_servers or _running()
    print(
        filling.fill(
            KafkaCluster(servers), events, topic, partitions, replace=replace, say=progress
        )
    )


@kafka.command()
def jars(
    engine: Annotated[str, typer.Option(callback=given, help="Of engines.yaml.")],
) -> None:
    """Print the jars with which an engine reads Kafka, as `spark-submit --jars` takes them."""
    from nexmark.config import load, paths, suggest
    from nexmark.engines import resolve
    from nexmark.kafka.jars import connector

    engines = load().engines
    if engine not in engines:
        raise NexmarkError(f"--engine: unknown engine {engine!r}; {suggest(engine, engines)}")
    build = engines[engine].build

    def on_stderr(text: str) -> None:
        print(text, file=sys.stderr)

    version = build.pypi or resolve(build, paths.builds_dir(), say=on_stderr).version
    found = connector(version, on_stderr)
    print(",".join(map(str, found)))


@kafka.command()
def bench(
    tests: Annotated[str | None, typer.Option(callback=given, help="K1,K4 (default: all).")] = None,
    records: Annotated[int, typer.Option(parser=whole(1000, 10**9), metavar="N")] = 500_000,
    runs: Annotated[int, typer.Option(parser=whole(1, 100), metavar="R")] = 3,
    bootstrap_servers: _Servers = None,
    out: Annotated[Path | None, typer.Option(help="A new file for the figures, JSON.")] = None,
) -> None:
    """Measure the brokers themselves, with Kafka's own tools, beside the figures of 2014.

    Starts three brokers and ends them; with --bootstrap-servers it measures brokers that run. The
    figures are kept in the results database; the page Kafka has the newest of each Kafka.
    """
    from nexmark.cli.kafka_bench_table import as_json, table
    from nexmark.config import paths
    from nexmark.kafka import broker
    from nexmark.kafka.benchmark import CONFS, TESTS, Bench
    from nexmark.kafka.tools import Tools
    from nexmark.kafka.topics import KafkaCluster
    from nexmark.store import open_store

    wanted = tests.replace(" ", "").upper().split(",") if tests else list(TESTS)
    for test in wanted:
        if test not in TESTS:
            raise typer.BadParameter(f"--tests: no test {test!r}; known: {', '.join(TESTS)}")
    if out is not None and (out.exists() or not out.parent.is_dir()):
        raise typer.BadParameter(f"--out: {out} is there, or its directory is not; name a new file")
    own = None if bootstrap_servers else broker.of_benchmarks()
    try:
        servers = own.up(3, broker.BENCH_PORT, say) if own else str(bootstrap_servers)
        mark = {OWNER_VARIABLE: own.mark} if own else {}
        cluster = KafkaCluster(servers)
        measured = Bench(
            cluster,
            Tools(servers, CONFS, mark, say),
            own.cpu_s if own else lambda: None,
            records,
            runs,
            say,
        ).run(wanted)
    finally:
        if own:
            own.down()
    print(f"\n{table(measured, is_shared=own is not None)}")
    figures = as_json(measured, is_shared=own is not None)
    figures |= {"records": records, "runs": runs}
    with open_store(paths.database_url()) as store:
        store.record_broker_bench("three brokers of this machine" if own else servers, figures)
    if out is not None:
        write_whole(out, json.dumps(figures, indent=1) + "\n")


def _running() -> str:
    """The bootstrap servers of the brokers of this machine."""
    from nexmark.kafka import broker

    ready = [
        f"127.0.0.1:{each.broker.port}"
        for each in broker.of_this_machine().status()
        if each.answers
    ]
    if not ready:
        raise NexmarkError(
            "kafka: no broker runs on this machine; start one with: nexmark kafka up, or give "
            "--bootstrap-servers"
        )
    return ",".join(ready)
