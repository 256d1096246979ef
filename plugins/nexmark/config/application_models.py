"""An application of a person, as `spark-submit` is given it: the part `application` of a job."""

import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from nexmark.config.fields import Model, SparkConf
from nexmark.errors import KeyedError, suggest
from nexmark_jobs.redaction import is_secret

#: What `{{ name }}` stands for in an argument or a conf: the input of the job, and directories
#: that are empty at the start of every repetition.
PLACES = ("checkpoint", "output", "input")
#: The keys with files that go with an application, and the Spark conf that stands for each option
#: of `spark-submit`: --py-files, --jars, --files.
FILE_CONFS = {
    "py_files": "spark.submit.pyFiles",
    "jars": "spark.jars",
    "files": "spark.files",
}
_ENDINGS = {"py_files": (".py", ".zip", ".egg"), "jars": (".jar",), "files": ("",)}
ITSELF, INPUT_READ = "itself", "when the input is read"
_BATCHES = re.compile(r"after ([1-9][0-9]{0,6}) batch(?:es)?")
_TEMPLATE = re.compile(r"\{\{\s*(.*?)\s*\}\}")
_CLASS = r"^[A-Za-z_$][\w$]*(\.[A-Za-z_$][\w$]*)*$"

OutputFormat: TypeAlias = Literal["parquet", "json", "csv", "csv with header", "delta"]


def _ends(value: str) -> str:
    if value not in (ITSELF, INPUT_READ) and not _BATCHES.fullmatch(value):
        known = f"{ITSELF}, after N batches or {INPUT_READ}"
        problem = f"{value!r} is not known" if value else "nobody can tell when it has read enough"
        raise ValueError(f"{problem}; write {known}")
    return value


def _below(path: str) -> str:
    parts = path.split("/")
    if path != "." and any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"{path!r} is no path below {{{{ output }}}}; write one such as counts")
    return path


def _path(name: str) -> str:
    if not PurePosixPath(name).name or "," in name:
        raise ValueError(f"{name!r} is no path of a file, or has a comma in it; write another")
    return name


FilePath: TypeAlias = Annotated[str, AfterValidator(_path)]


class JobApplication(Model):
    """A `spark-submit` as its owner runs it, with no file of ours in it.

    Attributes:
        main: the Python script or the JAR: a path, from the directory of the job's file on.
        java_class: the main class of a JAR.
        py_files: Python files that a script imports, or archives of them.
        jars: JARs on the class path of its driver and executors.
        files: files that Spark copies to the driver and the executors. The paths of all three begin
            at the directory of the job's file, or are absolute.
        args: its arguments.
        confs: Spark confs, which go before the confs of the engine.
        input: the path that stands for `{{ input }}`.
        output: the format of what it writes, by the path below `{{ output }}`; `.` for that itself.
        ends: how a repetition ends.
    """

    model_config = ConfigDict(populate_by_name=True)

    main: Annotated[str, Field(pattern=r"\.(py|jar)$")]
    java_class: Annotated[str, Field(pattern=_CLASS)] | None = Field(default=None, alias="class")
    py_files: tuple[FilePath, ...] = ()
    jars: tuple[FilePath, ...] = ()
    files: tuple[FilePath, ...] = ()
    args: tuple[str, ...] = ()
    confs: SparkConf = Field(default_factory=dict)
    input: Annotated[str, Field(min_length=1)] | None = None
    output: Mapping[Annotated[str, AfterValidator(_below)], OutputFormat] = Field(
        default_factory=dict
    )
    ends: Annotated[str, AfterValidator(_ends), Field(validate_default=True)] = ""

    @model_validator(mode="after")
    def _has_a_class(self) -> "JobApplication":
        if self.main.endswith(".jar") != (self.java_class is not None):
            problem = (
                "belongs to a JAR; remove it"
                if self.java_class
                else "is missing: name its main class"
            )
            raise KeyedError(("class",), problem)
        return self

    @model_validator(mode="after")
    def _ships_known_files(self) -> "JobApplication":
        if self.py_files and self.java_class:
            raise KeyedError(("py_files",), "py_files belongs to a script; remove it")
        for key, paths in self.shipped.items():
            names = [PurePosixPath(path).name for path in paths]
            if twice := sorted({name for name in names if names.count(name) > 1}):
                problem = f"two files are called {twice[0]}, and Spark keeps one of them"
                raise KeyedError((key,), f"{problem}; rename one")
            if odd := next((name for name in names if not name.endswith(_ENDINGS[key])), None):
                known = " or ".join(_ENDINGS[key])
                raise KeyedError((key,), f"{odd!r} is none of these; its name ends with {known}")
        return self

    @model_validator(mode="after")
    def _has_known_places(self) -> "JobApplication":
        for key, values in (("args", self.args), ("confs", tuple(self.confs.values()))):
            names = (name for value in values for name in _TEMPLATE.findall(value))
            for name in names:
                if name not in PLACES:
                    problem = f"{{{{ {name} }}}} is not known; {suggest(name, PLACES)}"
                    raise KeyedError((key,), problem)
        if ("input" in self.places) != (self.input is not None):
            problem = "is given and {{ input }} is in no argument" if self.input else "is missing"
            raise KeyedError(("input",), f"{problem}; give both, or neither")
        return self

    @model_validator(mode="after")
    def _shows_no_secret(self) -> "JobApplication":
        for name, value in pairwise(self.args):
            if name.startswith("-") and "=" not in name and is_secret(name, value):
                problem = f"the value of {name} is a secret, which Spark's event log would show"
                raise KeyedError(
                    ("args",), f"{problem}; write {name}=VALUE, or read it from a file"
                )
        return self

    @model_validator(mode="after")
    def _has_comparable_output(self) -> "JobApplication":
        if self.output and "output" not in self.places:
            raise KeyedError(("output",), "is given and {{ output }} is in no argument; write it")
        if self.output and self.batches:
            problem = f"its rows differ from run to run if it ends {self.ends}"
            remedy = f"write ends: {INPUT_READ}, or leave output out"
            raise KeyedError(("output",), f"{problem}; {remedy}")
        return self

    @property
    def file_name(self) -> str:
        """The name of the script or of the JAR, without its directory."""
        return PurePosixPath(self.main).name

    @property
    def shipped(self) -> Mapping[str, tuple[str, ...]]:
        """The paths of the files that go with it, by key."""
        return {"py_files": self.py_files, "jars": self.jars, "files": self.files}

    @property
    def places(self) -> frozenset[str]:
        """The names of `PLACES` in its arguments and confs."""
        texts = (*self.args, *self.confs.values())
        return frozenset(name for text in texts for name in _TEMPLATE.findall(text))

    @property
    def batches(self) -> int | None:
        """After how many batches of each streaming query it is stopped; None if it is not."""
        after = _BATCHES.fullmatch(self.ends)
        return int(after[1]) if after else None

    @property
    def ends_itself(self) -> bool:
        """Whether nobody stops it."""
        return self.ends == ITSELF


def filled(text: str, places: Mapping[str, str]) -> str:
    """Return an argument or the value of a conf with the places of a repetition in it."""
    return _TEMPLATE.sub(lambda place: places[place[1]], text)
