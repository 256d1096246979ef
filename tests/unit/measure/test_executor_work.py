"""Which executor ran which tasks, from the lines of a real event log (Spark 4.3.0), cut down."""

from __future__ import annotations

from pathlib import Path

import pytest

from nexmark.measure.event_log import EventLogError
from nexmark.measure.shares import TaskSpan, read_executor_work

APP = "app-20261123025000-0002"
ADDED = (
    '{"Event":"SparkListenerExecutorAdded","Timestamp":1795402206976,"Executor ID":"0",'
    '"Executor Info":{"Host":"10.231.7.12","Total Cores":1,"Log Urls":{},"Attributes":{}}}'
)
TASK = (
    '{"Event":"SparkListenerTaskEnd","Stage ID":3,"Stage Attempt ID":0,"Task Type":"ResultTask",'
    '"Task End Reason":{"Reason":"Success"},"Task Info":{"Task ID":5,"Index":1,"Attempt":0,'
    '"Launch Time":1795402216000,"Executor ID":"0","Host":"10.231.7.12","Locality":"NODE_LOCAL",'
    '"Speculative":false,"Getting Result Time":0,"Finish Time":1795402218500,"Failed":false,'
    '"Killed":false,"Accumulables":[]},"Task Metrics":{"Executor Run Time":2400,'
    '"Executor CPU Time":700000000}}'
)
LOST = (
    '{"Event":"SparkListenerTaskEnd","Stage ID":3,"Stage Attempt ID":1,"Task Info":{'
    '"Launch Time":1795402216000,"Executor ID":"0","Finish Time":1795402218500}}'
)


def log(directory: Path, *lines: str) -> Path:
    start = f'{{"Event":"SparkListenerApplicationStart","App ID":"{APP}"}}'
    (directory / APP).write_text("\n".join([start, *lines]) + "\n")
    return directory


def test_an_executor_has_the_tasks_it_ran(tmp_path: Path) -> None:
    (found,) = read_executor_work(log(tmp_path, ADDED, TASK, LOST), APP)
    assert (found.executor, found.host) == ("0", "10.231.7.12")
    assert found.tasks == [
        TaskSpan((3, 0), 1795402216.0, 1795402218.5, 0.7),
        TaskSpan((3, 1), 1795402216.0, 1795402218.5, 0.0),  # one that never told its metrics
    ]


def test_executors_that_were_not_registered_while_the_query_ran_have_no_share(
    tmp_path: Path,
) -> None:
    """One was lost before the first batch, and one took the place of another at the end."""

    def added(name: str, millis: int) -> str:
        return ADDED.replace('"0"', f'"{name}"').replace("1795402206976", str(millis))

    gone = (
        '{"Event":"SparkListenerExecutorRemoved","Timestamp":1795402209000,"Executor ID":"0",'
        '"Removed Reason":"Command exited with code 137"}'
    )
    lines = ADDED, gone, added("1", 1795402210000), TASK, added("2", 1795402300500)
    begin, end = 1795402212.0, 1795402300.0
    found = read_executor_work(log(tmp_path, *lines), APP, (begin, end))
    assert [each.executor for each in found] == ["1"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (TASK[:90], "cut off in mid-line"),
        (TASK.replace('"Stage ID":3,', ""), "an event is not as Spark 3.5 to 4.3 writes it: "),
    ],
)
def test_a_damaged_log_is_an_error_of_one_line(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(EventLogError, match=said) as raised:
        read_executor_work(log(tmp_path, ADDED, line), APP)
    assert "\n" not in str(raised.value)
