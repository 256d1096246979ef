"""Refuses an Airflow executor whose tasks do not all run on one machine.

The tasks of a night hand files to each other below `NEXMARK_HOME`, and find the processes of the
others (the cluster, the samplers, the driver) on their own machine. `docs/your-airflow.md` says
which executors are supported.
"""

import re
import socket

from airflow.sdk.configuration import conf

from nexmark.errors import FinalError, NexmarkError
from nexmark.night.night_plan import Night

_LOCAL = "LocalExecutor"
#: Executors that run each task in a container of its own.
_CONTAINERS = frozenset(
    {
        "KubernetesExecutor",
        "CeleryKubernetesExecutor",
        "LocalKubernetesExecutor",
        "AwsBatchExecutor",
        "AwsEcsExecutor",
        "AwsLambdaExecutor",
    }
)
_REMEDY = f"set AIRFLOW__CORE__EXECUTOR={_LOCAL}; see docs/your-airflow.md"


def executor() -> str:
    """Return the class of the executor that runs tasks which name none: Airflow's first one."""
    first = re.split("[,;]", conf.get("core", "executor"))[0]
    return re.split("[.:=]", first)[-1].strip()


def executor_problem() -> str:
    """Return why the executor cannot run a night; '' if it may."""
    if (name := executor()) not in _CONTAINERS:
        return ""
    problem = f"{name} gives each task a container, and ends with it the cluster that a task starts"
    return f"core.executor: {problem}; {_REMEDY}"


def night_of(dag_id: str, run_id: str) -> Night:
    """Return the plan of a DAG run; FinalError in a task on another machine than the preflight.

    The LocalExecutor has one machine, whose name may change where it is a container.
    """
    here, local = socket.gethostname(), executor() == _LOCAL
    try:
        night = Night.read(dag_id, run_id)
    except NexmarkError as error:
        if local:
            raise
        raise FinalError(f"{error}; {_one_machine(here)}") from None
    if not local and here != night.machine:
        raise FinalError(f"the night began on machine {night.machine}; {_one_machine(here)}")
    return night


def _one_machine(here: str) -> str:
    """Return what a task on the machine `here` says to a person who has several machines."""
    rule = f"this task runs on {here}, and all tasks of a night have to run on one machine"
    return f"{rule}: keep one worker of {executor()}, or {_REMEDY}"
