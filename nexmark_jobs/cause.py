"""Find the line of a log that says why Spark, spark-submit, a JVM, Python or a shell ended.

A log is a sequence of records: a line of log4j with its stack trace, a Python traceback with the
Java one behind it, or a line of a launcher. In a record, what Spark calls an error class comes
first, then the innermost cause. Of the records, how the program itself ended comes first, then the
first error in its log: what follows is often what the first one has led to.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

_WRAPPERS = {"FOREACH_BATCH_USER_FUNCTION_ERROR", "STREAM_FAILED", "TASK_WRITE_FAILED"}
_LEVELS = {"DEBUG", "INFO", "WARN", "WARNING", "ERROR", "FATAL"}
_ERROR_CLASS = re.compile(r"(?=(?P<all>\[(?P<name>[A-Z][A-Z0-9_.]+)\] [^\n]+))")
_JAVA_ERROR = re.compile(
    r"\b(?!pyspark|py4j)[a-z][\w.]*\.(?P<name>[A-Z]\w+(?:\$\w+)?)(?::|(?:(?<=Error)|(?<=Exception))\s*$)"
)
_PYTHON = re.compile(r"(?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit)(?:: .*)?$")

_JOB = re.compile(r"\w+\.py: error: .+")
_LOG4J = re.compile(
    r"\[?[\d/-]{8,10}[ T][\d:.,]{8,15}\]? (?P<level>[A-Z]{4,5}) +(?:[\w.$]+: )?(?P<text>.*)"
)
_TRACEBACK = "Traceback (most recent call last):"
_MAIN = re.compile(r'Exception in thread "[^"]*" (?P<cause>.+)')
_LAUNCHER = re.compile(
    r"Error: .+|Error occurred during .+|\S*: line \d+: .+|.+: (?:\[Errno \d+\] )?"
    r"(?:No such file or directory|Permission denied|Too many open files|command not found)"
)
#: What the JVM's launcher says beside the reason.
_NO_REASON = re.compile(
    r"Error: (?:A JNI error|Could not create the Java|A fatal exception)|.*bad array subscript"
)
_NO_MEMORY = re.compile(
    r"(?<![\w+])(?:java\.lang\.)?OutOfMemoryError(?:: [\w /()-]+)?"
    r"|There is insufficient memory for the Java Runtime Environment"
)
_FRAME = re.compile(r"at [\w.$/<>]+\(.*\)|\.\.\. \d+ more|\^+$|~+\^")
_JAVA_FRAME = re.compile(r"\s+at [\w.$/<>]+\(")
_PYTHON_FRAME = re.compile(r' +File "(?P<file>[^"]+)", line (?P<line>\d+)')
#: What Spark says of an error in a Python worker, before the traceback of the worker.
_OF_WORKER = re.compile(r"PythonException\b|\[PYTHON_[A-Z_.]+\]")
#: Errors of a program that something else has ended already.
_AFTERMATH = re.compile(
    r"SparkContext was shut down|stopped SparkContext|SparkContext has been shutdown"
    r"|Shutdown hooks cannot|Could not find CoarseGrainedScheduler|InterruptedException"
    r"|Heartbeater|Lost executor|ExecutorLostFailure|Cannot invoke .* is null"
)
_FILES = re.compile(r"Too many open files|Error loading java\.security file")
_FILES_REMEDY = "too many files are open; raise the limit: ulimit -n 4096"


_KILLED = ", as the kernel does it when the memory is used up; see dmesg"
_SILENT = "it ended without a word"


@dataclass
class _Record:
    level: str  # of log4j; PROGRAM for how the program itself ended, "" for anything else
    lines: list[str]


_PROGRAM = "PROGRAM"
#: Which record says it, in this order; and whether the first one of its level, or the last.
_ORDER = ((_PROGRAM, -1), ("FATAL", 0), ("ERROR", 0), ("WARN", -1), ("", -1))


def cause(log: str) -> str | None:
    """Return the line of a log that says why its program ended; None if no line does."""
    lines = [line.strip("\r") for line in log.splitlines() if line.strip()]
    of_jobs = [line for line in lines if _JOB.match(line.strip())]
    if of_jobs:
        return of_jobs[-1].strip()
    for pattern, text in ((_NO_MEMORY, ""), (_FILES, f": {_FILES_REMEDY}")):
        if problem := next((m[0] for line in lines if (m := pattern.search(line))), None):
            return f"{problem}{text}"
    records = list(_records(lines))
    reasons = [(record.level, text) for record in records if (text := _reason(record))]
    causes = [(level, text) for level, text in reasons if not _AFTERMATH.search(text)]
    for level, place in _ORDER:
        if of_level := [text for level_of_cause, text in causes if level_of_cause == level]:
            return of_level[place]
    return reasons[-1][1] if reasons else None


def _records(lines: list[str]) -> Iterator[_Record]:
    """Yield the records of a log that may say why it ended."""
    record = _Record("", [])
    for number, line in enumerate(lines):
        if match := _LOG4J.match(line):
            yield record
            record = _Record(match["level"], [match["text"]])
        elif line.startswith(_TRACEBACK) or _MAIN.match(line):
            yield record
            record = _Record(_PROGRAM, [line])
        elif _LAUNCHER.match(line) and record.level != _PROGRAM:
            yield record
            record = _Record("", [])
            yield from _launcher(lines, number)
        else:
            record.lines.append(line)
    yield record


def _launcher(lines: list[str], number: int) -> Iterator[_Record]:
    """Yield the record of a shell or JVM launcher; the reason is in this line or the next one."""
    line = lines[number]
    if line.startswith("Error occurred during"):
        yield _Record(_PROGRAM, lines[number + 1 : number + 2] or [line])
    elif line.startswith("Error: Could not create the Java") and number:
        yield _Record(_PROGRAM, [lines[number - 1]])
    elif not _NO_REASON.match(line):
        yield _Record(_PROGRAM, [line])


def _reason(record: _Record) -> str:
    """Return the reason that a record gives for the end of its program, or ''."""
    lines = [line for line in record.lines if not _FRAME.match(line.strip())]
    if not lines:
        return ""
    if cause_of_all := innermost("\n".join(lines)):
        return cause_of_all
    if main := _MAIN.match(lines[0]):
        return main["cause"]
    python = [line for line in lines if _PYTHON.match(line)]
    if python or record.level == _PROGRAM:
        return (python or [line for line in lines if line[0] != " "] or lines)[-1].strip()
    return lines[0].strip() if record.level in ("ERROR", "FATAL") else ""


def error_classes(text: str) -> list[str]:
    """Return Spark's error classes in a text, each with its line, without those that only wrap."""
    matches = _ERROR_CLASS.finditer(text)
    return [m["all"] for m in matches if m["name"] not in _WRAPPERS | _LEVELS]


def java_errors(text: str) -> dict[str, str]:
    """Return the Java errors in a text by the names of their classes, the innermost cause last."""
    errors: dict[str, str] = {}
    for line in text.splitlines():
        if match := _JAVA_ERROR.search(line):
            errors.pop(match["name"], None)
            errors[match["name"]] = line[match.start() :].strip()
    return errors


def innermost(text: str) -> str | None:
    """Return the cause of one error; None if its text names none.

    Of a Python worker this is the error at the end of its traceback, with the line that raised it.
    Else it is the first of Spark's error classes that does not just wrap another error, else the
    last Java error, which is the innermost cause.
    """
    worker = _OF_WORKER.search(text)
    if worker and (error := _of_worker(text[worker.start() :])):
        return error
    causes = error_classes(text) or list(java_errors(text).values())[-1:]
    return causes[0] if causes else None


def _of_worker(text: str) -> str | None:
    """Return the error of a Python worker and the line that raised it; None if it is not there.

    Where one error led to another, that is the last one.

    Args:
        text: An error of Spark with the traceback of the worker and a Java stack trace behind it.
    """
    error, place, is_open = None, "", False
    for line in text.splitlines():
        if _JAVA_FRAME.match(line):
            break
        if line.endswith(_TRACEBACK):
            is_open = True
        elif is_open and (frame := _PYTHON_FRAME.match(line)):
            place = f" ({PurePath(frame['file']).name}:{frame['line']})"
        elif is_open and line[:1].strip():
            error, is_open = f"{line.strip()}{place}", False
    return error


def failure_cause(log: str, code: int | None = None) -> str:
    """Return why a program ended, in one line; the last line of its log if no line says why.

    Args:
        log: the text of the log.
        code: the exit code. A shell adds 128 to the number of a signal, Python negates it.
    """
    if reason := cause(log):
        return reason
    number = -code if code and code < 0 else (code or 0) - 128
    if number in {each.value for each in signal.Signals}:
        name = signal.Signals(number).name
        return f"it was killed by {name}{_KILLED if name == 'SIGKILL' else ''}"
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return next((line for line in reversed(lines) if not _FRAME.match(line)), _SILENT)
