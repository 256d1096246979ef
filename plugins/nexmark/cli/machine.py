"""The verbs about this machine and its clusters: ui, cluster."""

import importlib
from typing import Annotated, Any

import typer

from nexmark.cli.shared_options import Port, given
from nexmark.config import SshCluster, load, paths, pick
from nexmark.errors import NexmarkError
from nexmark.terminal import COULD_NOT_RUN

#: In clusters.yaml, the hosts that `nexmark cluster up` makes.
_TEST_CLUSTER = "namespaces"

_HELP = "Look at the hosts of a cluster; make three to test with."
cluster = typer.Typer(name="cluster", help=_HELP)


def ui(
    port: Port = 8080,
    example: Annotated[
        bool,
        typer.Option("--example", help="Show sixty example nights, in a home of their own."),
    ] = False,
) -> int:
    """Start Airflow with these DAGs on 127.0.0.1.

    Ctrl-C ends it. With --example, it has pages only: no DAG runs.
    """
    from nexmark.cli.own_airflow import serve

    return serve(port, example)


@cluster.command()
def check(
    name: Annotated[
        str, typer.Argument(callback=given, help="The cluster, of clusters.yaml.")
    ] = "local",
) -> int:
    """Print the hosts of a cluster and what is wrong with them.

    0 if a night can be run there, 2 if not.
    """
    import os
    import sys

    from nexmark.airflow_site.airflow_home import airflow_environment, prepare
    from nexmark.cluster import open_cluster

    config = load()
    chosen = pick("cluster", name, config.clusters)
    environment = airflow_environment(config)
    prepare(environment)
    os.environ.update(environment)  # the connections are Airflow's
    problems = open_cluster(chosen, paths.home()).problems(print)
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"cluster {name}: " + (f"{len(problems)} problems" if problems else "ready"))
    return COULD_NOT_RUN if problems else 0


@cluster.command()
def up(
    kafka: Annotated[
        bool, typer.Option("--kafka", help="Start a broker on each host, too.")
    ] = False,
) -> None:
    """Start three hosts to test with (root).

    They are namespaces of this machine.
    """
    _test_hosts("up")
    if kafka:
        print(f"Kafka is ready at {_test_hosts('up', 'testbed.kafka', print)}")
    status()


@cluster.command()
def down() -> None:
    """Remove these hosts (root)."""
    _test_hosts("down")


@cluster.command()
def status() -> None:
    """Print a line for each of these hosts (root)."""
    print("\n".join(_test_hosts("status")))


def _test_hosts(function: str, module: str = "testbed", *arguments: Any) -> Any:
    """Call a function of a module of testbed/ with the test cluster, the home and the arguments."""
    testbed = module_of_a_clone(module)
    config = load().clusters.get(_TEST_CLUSTER)
    if not isinstance(config, SshCluster):
        problem = f"{paths.conf_dir()}/clusters.yaml has no cluster {_TEST_CLUSTER} of kind ssh"
        raise NexmarkError(f"{problem}; take the one this package came with")
    return getattr(testbed, function)(config, paths.home(), *arguments)


def module_of_a_clone(module: str) -> Any:
    """Return a module that is not in the wheel; NexmarkError where there is no clone."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name != package:
            raise
        problem = "is not installed: it is only in a clone of the repository; run this there"
        raise NexmarkError(f"{package}/ {problem}") from None
