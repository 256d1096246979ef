"""The verbs about Kafka: a broker on this machine, its topics, the jars of Spark's connector."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nexmark.cli import shared_options as option
from nexmark.config import load, paths
from nexmark.errors import NexmarkError
from nexmark.terminal import columns, show_line
from nexmark_jobs.host.processes import OWNER_VARIABLE

if TYPE_CHECKING:
    from nexmark.kafka.benchmark import BenchRow

kafka = typer.Typer(help="A Kafka broker to test with, its topics, and Spark's connector.")

_Servers = Annotated[
    str | None, option.text("HOST:PORT,... (default: the broker of this machine).")
]
_PortOption = Annotated[int | None, option.number(1, 65000, help="Of the first broker.")]
_HEADS = ("test", "records/s", "MB/s", "clients CPU-s", "brokers CPU-s", "the text", "what")
_RATIO_HEADS = ("ratio", "here", "the text", "what it says")


@kafka.command()
def up(brokers: Annotated[int, option.number(1, 3, "1|3")] = 1, port: _PortOption = None) -> None:
    """Start Apache Kafka on 127.0.0.1 and wait until it answers; its storage is in .nexmark."""
    from nexmark.kafka import broker

    if brokers not in broker.COUNTS:
        raise typer.BadParameter(f"--brokers: {brokers} is not 1 or 3")
    chosen = broker.PORT if port is None else port
    servers = broker.of_this_machine().up(brokers, chosen, show_line)
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
    topic: Annotated[str, option.text("A new topic.")],
    partitions: Annotated[int, option.number(1, 1000, "P")] = 8,
    replace: Annotated[bool, typer.Option("--replace", help="Remove such a topic first.")] = False,
    bootstrap_servers: _Servers = None,
) -> None:
    """Write recorded events to a new topic: event n to partition n mod P."""
    from nexmark.kafka import filling
    from nexmark.kafka.topics import KafkaCluster

    cluster = KafkaCluster(bootstrap_servers or _running())
    args = cluster, events, topic, partitions
    print(
        filling.fill(*args, replace=replace, say=lambda written: show_line(f"{written:,} events"))
    )


@kafka.command()
def jars(engine: Annotated[str, option.text("Of engines.yaml.")]) -> None:
    """Print the jars with which an engine reads Kafka, as `spark-submit --jars` takes them."""
    from nexmark.engines import resolve
    from nexmark.kafka.jars import connector

    build = load().engine(engine).build
    version = build.pypi or resolve(build, paths.builds_dir(), say=option.on_stderr).version
    print(",".join(map(str, connector(version, option.on_stderr))))


@kafka.command()
def bench(
    tests: Annotated[str | None, option.text("K1,K4 (default: all).")] = None,
    records: Annotated[int, option.number(1000, 10**9)] = 500_000,
    runs: Annotated[int, option.number(1, 100, "R")] = 3,
    bootstrap_servers: _Servers = None,
    out: option.Out = None,
) -> None:
    """Measure the brokers themselves, with Kafka's own tools, beside the figures of 2014.

    Starts three brokers and ends them; with --bootstrap-servers it measures brokers that run. The
    figures are kept in the results database; the page Kafka has the newest of each Kafka.
    """
    from nexmark.kafka import broker
    from nexmark.kafka.benchmark import TESTS, Bench
    from nexmark.kafka.tools import Tools
    from nexmark.kafka.topics import KafkaCluster
    from nexmark.store import open_store

    wanted = tests.replace(" ", "").upper().split(",") if tests else list(TESTS)
    for test in wanted:
        if test not in TESTS:
            raise typer.BadParameter(f"--tests: no test {test!r}; known: {', '.join(TESTS)}")
    open_store(paths.database_url()).close()  # before minutes are spent
    own = None if bootstrap_servers else broker.of_this_machine("bench")
    try:
        servers = own.up(3, broker.BENCH_PORT, show_line) if own else str(bootstrap_servers)
        tools = Tools(servers, {OWNER_VARIABLE: own.mark} if own else {}, show_line)
        brokers_cpu_s = own.cpu_s if own else lambda: None
        one = Bench(KafkaCluster(servers), tools, brokers_cpu_s, records, runs, show_line)
        measured = one.run(wanted)
    finally:
        if own:
            own.down()
    print(f"\n{table(measured, is_shared=own is not None)}")
    figures = as_json(measured, is_shared=own is not None)
    figures |= {"records": records, "runs": runs}
    option.write(out, figures)
    with open_store(paths.database_url()) as store:
        store.record_broker_bench("three brokers of this machine" if own else servers, figures)


def as_json(rows: "Sequence[BenchRow]", *, is_shared: bool) -> dict[str, Any]:
    """The figures of tests and ratios, to be kept."""
    from nexmark.kafka.benchmark import TESTS

    tests = [asdict(row) | {"text": TESTS[row.id.split()[0]].text} for row in rows]
    what = {row.id: TESTS[row.id.split()[0]].what for row in rows}
    ratios = _ratios(rows, is_shared)
    return {"is_shared": is_shared, "tests": tests, "what": what, "ratios": ratios}


def table(rows: "Sequence[BenchRow]", *, is_shared: bool) -> str:
    """Tests and ratios; `is_shared`: brokers and clients are on one machine."""
    tests = columns(_HEADS, [_line(row) for row in rows])
    ratios = _ratios(rows, is_shared)
    found = [[x["ratio"], f"{x['value']:.2f}", f"{x['text']:.2f}", x["says"]] for x in ratios]
    return f"{tests}\n\n{columns(_RATIO_HEADS, found)}" if found else tests


def _ratios(rows: "Sequence[BenchRow]", is_shared: bool) -> list[dict[str, Any]]:
    from nexmark.kafka.benchmark import RATIOS, ratio

    found = []
    for each in RATIOS:
        if (value := ratio(each, list(rows))) is not None:
            says = each.meaning + (f"; {each.shared}" if is_shared and each.shared else "")
            name = f"{each.over}/{each.under}"
            found.append({"ratio": name, "value": value, "text": each.text, "says": says})
    return found


def _line(row: "BenchRow") -> list[str]:
    from nexmark.kafka.benchmark import TESTS

    test = TESTS[row.id.split()[0]]
    brokers = "" if row.brokers_cpu_s is None else f"{row.brokers_cpu_s:.1f}"
    if row.latencies is not None:
        x = row.latencies
        measured = [f"p50 {x.p50} ms", f"p99 {x.p99} ms", "2 and 3 ms"]
        what = f"{test.what}; p99.9 {x.p999} ms, the text 14 ms"
    else:
        assert row.records is not None
        assert row.megabytes is not None
        rate = row.records
        spread = "" if rate.low == rate.high else f" ({rate.low:,.0f}-{rate.high:,.0f})"
        text = "" if test.text is None else f"{test.text:,.0f}"
        measured = [f"{rate.median:,.0f}{spread}", f"{row.megabytes:,.1f}", text]
        what = test.what
    return [row.id, *measured[:2], f"{row.clients_cpu_s:.1f}", brokers, measured[2], what]


def _running() -> str:
    """The bootstrap servers of the brokers of this machine."""
    from nexmark.kafka import broker

    found = broker.of_this_machine().status()
    ready = [f"127.0.0.1:{each.broker.port}" for each in found if each.answers]
    if not ready:
        remedy = "start one with: nexmark kafka up, or give --bootstrap-servers"
        raise NexmarkError(f"kafka: no broker runs on this machine; {remedy}")
    return ",".join(ready)
