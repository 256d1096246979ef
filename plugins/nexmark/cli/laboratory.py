"""The verbs of the laboratory: each answers one question once, and no night needs them."""

import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from nexmark.cli import shared_options as option
from nexmark.cli.kafka_verbs import BootstrapServers, kafka
from nexmark.cli.machine import module_of_a_clone
from nexmark.cli.recovery_verbs import Bandwidth, Latency, Tps, marked_processes, remote_storage
from nexmark.config import paths
from nexmark.errors import suggest
from nexmark.terminal import columns, show_line
from nexmark_jobs.host.processes import OWNER_VARIABLE

LABORATORY = "Laboratory"
BENCHES = {
    "generator": "events per CPU-second of the generator",
    "queries": "events per CPU-second of every query, beside nexmark-flink",
    "sampler": "CPU time of the sampler itself",
    "runtimes": "the JDKs and Pythons that each Spark runs on",
    "canary": "how steady the canary is on this host",
    "flight-recorder": "CPU time of the JDK's flight recorder",
    "noise": "where the variance of a figure comes from",
    "gate": "what the gate finds and how often it is wrong",
    "soak": "how often a soak night is wrong, and what it finds",
    "gate-figure": "the figure of how the gate decides, from a simulated night",
    "releases-figure": "the figure of what Spark's releases cost, from the measured pairs",
    "latency": "whether the gate sees rows that come later, and is silent where nothing changed",
    "recovery": "whether the gate sees slower restores, and is silent where nothing changed",
    "kills": "whether queries are right after 200 killed runs",
    "affinity": "whether tasks find their state nearby after an executor or a worker is lost",
    "kafka-source": "events per CPU-second from Kafka, beside the generator",
    "detection": "real regressions on real Spark, and what the gate says",
    "bisection": "how often bisection names the right build, and its cost",
    "web": "server time of every page at 400 nights",
    "screenshots": "pictures of the pages of the newest night (needs chromium)",
}
_UNITS_MB = {"MB": 1, "GB": 1024}
_TASKS = 2


def bench(
    context: typer.Context, name: Annotated[str, typer.Argument(help=", ".join(BENCHES))] = ""
) -> int:
    """Measure a part of this package.

    `nexmark bench` lists the benchmarks, and `nexmark bench NAME --help` the options of one.
    """
    if name not in BENCHES:
        if name and name != "--help":
            raise typer.BadParameter(f"no benchmark {name!r}; {suggest(name, BENCHES)}")
        width = max(map(len, BENCHES))
        print("nexmark bench NAME [--help]")
        print(*(f"  {each:<{width}}  {what}" for each, what in BENCHES.items()), sep="\n")
        return 0
    module = module_of_a_clone(f"bench.{name.replace('-', '_')}")
    main: Callable[[list[str]], int | None] = module.main
    return main(context.args) or 0


@kafka.command("bench", rich_help_panel=LABORATORY)
def bench_brokers(
    tests: Annotated[str | None, option.text("The tests, as K1,K4 (default: all).")] = None,
    records: Annotated[int, option.number(1000, 10**9, help="Records of a run.")] = 500_000,
    runs: Annotated[int, option.number(1, 100, "R", "Measured runs of each test.")] = 3,
    bootstrap_servers: BootstrapServers = None,
    out: option.Out = None,
) -> None:
    """Measure the brokers with Kafka's own tools.

    Ten tests, beside their figures of 2014. Starts three brokers and ends them; with
    --bootstrap-servers it measures brokers that run. The figures are kept in the results database;
    the page Kafka has the newest of each Kafka.
    """
    from nexmark.kafka import broker
    from nexmark.kafka.topics import KafkaCluster
    from nexmark.labs.broker_benchmark import TESTS, Bench
    from nexmark.labs.broker_tables import broker_figures, broker_table
    from nexmark.labs.kafka_tools import Tools
    from nexmark.store import open_store

    wanted = tests.replace(" ", "").upper().split(",") if tests else list(TESTS)
    for test in wanted:
        if test not in TESTS:
            raise typer.BadParameter(f"--tests: no test {test!r}; known: {', '.join(TESTS)}")
    open_store(paths.database_url()).close()  # before minutes are spent
    local = None if bootstrap_servers else broker.of_this_machine("bench")
    try:
        servers = local.up(3, broker.BENCH_PORT, show_line) if local else str(bootstrap_servers)
        tools = Tools(servers, {OWNER_VARIABLE: local.mark} if local else {}, show_line)
        brokers_cpu_s = local.cpu_s if local else lambda: None
        benchmark = Bench(KafkaCluster(servers), tools, brokers_cpu_s, records, runs, show_line)
        measured = benchmark.run(wanted)
    finally:
        if local:
            local.down()
    print(f"\n{broker_table(measured, is_shared=local is not None)}")
    figures = broker_figures(measured, is_shared=local is not None)
    figures |= {"records": records, "runs": runs}
    option.write(out, figures)
    with open_store(paths.database_url()) as store:
        store.record_broker_bench("three brokers of this machine" if local else servers, figures)


def recovery_damage(
    query: Annotated[str, option.query("A query that keeps state.")] = "q20",
    damage: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND", help="One kind of damage (default: all). Repeat for more."),
    ] = None,
    events: Annotated[int, option.number(200, 10**9, help="How many events are read.")] = 4_000,
    tps: Tps = 100,
    seed: option.Seed = 1,
    engine: option.Engine = None,
    out: option.Out = None,
) -> int:
    """Damage checkpoints of a query, and go on with them.

    Spark refuses a damaged checkpoint, with an error class that is printed; or it goes on and its
    result is right; or it answers wrongly. 1 if it answered wrongly anywhere.
    """
    from nexmark.compatibility.cases import Input
    from nexmark.labs.damage import DAMAGES
    from nexmark.labs.damage_run import PLACES, run_damaged

    option.comparable_query(query)
    kinds = damage or list(DAMAGES)
    for kind in kinds:
        if kind not in DAMAGES:
            raise typer.BadParameter(f"--damage: no kind {kind!r}; {suggest(kind, DAMAGES)}")
    name, build = option.build_of(engine, option.on_stderr)
    runs = run_damaged(build, query, kinds, Input(events, tps, seed), option.on_stderr)
    rows = {(run.kind, run.state): ["", ""] for run in runs}
    for run in runs:
        rows[run.kind, run.state][PLACES.index(run.place)] = run.words
    order = sorted(rows, key=lambda key: ["(none)", *kinds].index(key[0]))
    print(columns(("damage", "state", *PLACES), [[*key, *rows[key]] for key in order]))
    wrong = [run for run in runs if run.is_wrong]
    for run in wrong:
        option.on_stderr(f"{name}: {run.kind}, {run.state}, {run.place}: {run.restart.reason}")
    outcomes = [
        {
            "damage": run.kind,
            "state": run.state,
            "checkpoint": run.place,
            "outcome": run.words,
            "reason": run.restart.reason,
        }
        for run in runs
    ]
    option.write(out, {"engine": name, "query": query, "outcomes": outcomes})
    return 1 if wrong else 0


def recovery_sizes(
    query: Annotated[str, option.query("A query that keeps all rows.")] = "q20",
    grow_to: Annotated[
        str, option.text("The sizes of the state, as 64MB,1GB.", metavar="SIZES")
    ] = "64MB,256MB",
    repetitions: Annotated[int, option.number(1, 100, help="Restarts at each size.")] = 5,
    tps: Tps = 1_000,
    seed: option.Seed = 1,
    rows_per_batch: Annotated[
        int, option.number(1, 10**9, "B", "Rows of a micro-batch.")
    ] = 100_000,
    latency_ms: Latency = None,
    mb_per_s: Bandwidth = None,
    conf: option.Conf = None,
    engine: option.Engine = None,
    out: option.Out = None,
    keep: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Keeps states and restarts: after Ctrl-C the same command goes on."
        ),
    ] = None,
) -> None:
    """Grow the state of a query, and restart it at each size.

    RocksDB with snapshots and with changelogs, with the checkpoint on the local disk and on the
    stand-in for remote storage. The first table has what a restart costs; the second one has
    seconds per MB of a task, and what they predict for a state of 57 GB in 8 tasks, beside
    Oceanus' figures for Flink.
    """
    from nexmark.labs.restore_sizes import Growth, cells, predictions, restarts

    option.comparable_query(query)
    sizes = _sizes_mb(grow_to)
    name, build = option.build_of(engine, option.on_stderr)
    remote = remote_storage(latency_ms, mb_per_s, seed)
    growth = Growth(query, tps, seed, rows_per_batch, repetitions, remote, option.confs_of(conf))
    with marked_processes(f"recovery-sizes {query}") as mark:
        restarted = list(restarts(build, growth, sizes, mark, option.on_stderr, keep))
    costs = ("restore s", "interruption s", "commit s")
    print(columns(("state", "checkpoint", "MB", *costs), cells(restarted)))
    fits = ("restore s/MB", "restore s", "interruption s/MB", "interruption s")
    print("\nby task, and at 57 GB in 8 tasks:")
    print(columns(("state", "checkpoint", *fits), predictions(restarted, _TASKS)))
    figures = {"engine": name, "query": query, "restarts": [asdict(each) for each in restarted]}
    option.write(out, figures)


def _sizes_mb(text: str) -> list[int]:
    """Return sizes like 64MB,1GB in MB, in ascending order."""
    sizes = []
    for part in text.split(","):
        matched = re.fullmatch(r"([1-9][0-9]{0,5})(MB|GB)", part.strip())
        if matched is None:
            raise typer.BadParameter(f"--grow-to: {part!r} is not a size; write 64MB,256MB or 1GB")
        sizes.append(int(matched[1]) * _UNITS_MB[matched[2]])
    return sorted(set(sizes))
