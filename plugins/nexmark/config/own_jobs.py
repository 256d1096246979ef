"""The jobs of a person's own: `include/conf/jobs/NAME.yaml` beside the files that it names."""

import ast
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from nexmark.config import paths
from nexmark.config.application_models import FILE_CONFS, JobApplication
from nexmark.config.document import Document, Key, display, read, read_text
from nexmark.config.expectation_files import AddedExpectation, added_of
from nexmark.config.fields import Model, SparkConf, job_names, refused_name
from nexmark.config.job_tables import CHECK_TABLES, TABLE_NAME, JobTable, JobTables
from nexmark.errors import ConfigError, KeyedError
from nexmark_jobs.redaction import is_secret

FOLDER = "jobs"
_DIGITS = 8
#: Confs that name files: these have to be beside the job, so that they go with it.
_FILES = re.compile(r"spark\.(?:jars(?:\..*)?|files|archives|submit\.pyFiles)")


def _file_name(value: object) -> object:
    """Take the name of a file in the directory of the job only."""
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*", value):
        return value
    problem = "is not the name of a file; write one that lies beside this file"
    raise ValueError(f"{value!r} {problem}")


FileName: TypeAlias = Annotated[str, BeforeValidator(_file_name)]


def _function(value: object) -> object:
    """Take a Python file beside the job and the name of a function in it."""
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z_]\w*\.py:[A-Za-z_]\w*", value, re.ASCII):
        return value
    raise ValueError(f"{value!r} is not FILE:FUNCTION; write it like orders.py:build")


Function: TypeAlias = Annotated[str, BeforeValidator(_function)]


def _function_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        raise ValueError(f"{name!r} is no function; write the name of one in the file of python")
    return name


#: Archives that Python imports from. A wheel is one by another name.
_ARCHIVES = (".zip", ".egg", ".whl")


def _is_archive(name: str) -> bool:
    return name.endswith(_ARCHIVES)


def _deployed(name: str) -> str:
    """Return the name under which Spark takes one of `py_files`: a wheel only as a .zip."""
    return f"{name.removesuffix('.whl')}.zip" if name.endswith(".whl") else name


def _jar(name: str) -> str:
    if not name.endswith(".jar"):
        raise ValueError(f"{name!r} is no JAR; its name ends with .jar")
    return name


def _of_a_job(confs: Mapping[str, str]) -> Mapping[str, str]:
    """Take confs that only say how Spark runs: not which files it has, and no secret."""
    for name, value in confs.items():
        if _FILES.fullmatch(name):
            problem = f"{name} names files that do not go with the job"
            raise KeyedError((name,), f"{problem}; put them beside it, and list them in jars")
        if is_secret(name, value):
            problem = f"{name} is a secret, which the plan of a night would show"
            raise KeyedError((name,), f"{problem}; write it into the conf of the engine")
    return confs


class JobFile(Model):
    """A file that goes with a job as it is: its path on this machine, and its content's hash."""

    path: str
    sha256: str

    @classmethod
    def of(cls, path: Path) -> "JobFile":
        """Return what is known of a file; OSError if it cannot be read."""
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256")
        return cls(path=str(path.absolute()), sha256=digest.hexdigest())

    @property
    def name(self) -> str:
        """Its name, without its directory."""
        return Path(self.path).name

    def content(self) -> bytes:
        """Return its content; ConfigError for a file that is no longer what it was."""
        path = Path(self.path)
        content = path.read_bytes() if path.is_file() else b""
        if hashlib.sha256(content).hexdigest() != self.sha256:
            problem = "is not what it was when the night was planned"
            raise ConfigError(f"{display(path)}: {problem}; start the DAG run again")
        return content


class Job(Model):
    """A query of a person's own.

    Attributes:
        name: its name, the file's.
        tables: what its SQL or Python reads: `nexmark` for person, auction and bid of the
            generator, or tables of its own, by their names.
        sql: the file with its statements; or
        python: FILE:FUNCTION, the function that makes its frame.
        foreach_batch: the function of the file that makes the rows to write of each micro-batch.
        py_files: what its Python file imports from beside it: Python files, and archives of them.
        jars: JARs beside it, on the class path of its drivers and executors.
        confs: Spark confs, which go before the confs of the engine.
        application: what `spark-submit` runs as it is, in place of SQL or Python.
        output_mode: Spark's output mode.
        key: the columns that say which row of another run a row is to be compared with; in update
            mode, the columns by which later rows replace earlier ones.
        reference: a file with its whole result as DuckDB SQL.
        expectations: a file with a suite of Great Expectations.
        text: the content of its file.
        py_texts: the content of each of `py_files` that is a Python file.
        py_archives: where each other one of `py_files` is, with its hash.
        jar_files: where each of `jars` is, with its hash.
        reference_text: the content of `reference`.
        added: the content of `expectations`.
        main_file: the script or the JAR of `application`.
        shipped_files: where each of the files is that go with `application`, with its hash, by key.
        input_sha256: the hash of the files of its own tables; '' until a night is planned.
    """

    name: str
    tables: Literal["nexmark"] | JobTables | None = None
    sql: FileName | None = None
    python: Function | None = None
    foreach_batch: Annotated[str, AfterValidator(_function_name)] | None = None
    py_files: tuple[FileName, ...] = ()
    jars: tuple[Annotated[FileName, AfterValidator(_jar)], ...] = ()
    confs: Annotated[SparkConf, AfterValidator(_of_a_job)] = Field(default_factory=dict)
    application: JobApplication | None = None
    output_mode: Literal["append", "update", "complete"] = "append"
    key: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    reference: FileName | None = None
    expectations: FileName | None = None
    text: str = ""
    py_texts: tuple[str, ...] = ()
    py_archives: tuple[JobFile, ...] = ()
    jar_files: tuple[JobFile, ...] = ()
    reference_text: str = ""
    added: tuple[AddedExpectation, ...] = ()
    main_file: JobFile | None = None
    shipped_files: Mapping[str, tuple[JobFile, ...]] = Field(default_factory=dict)
    input_sha256: str = ""

    @model_validator(mode="after")
    def _one_kind(self) -> "Job":
        kinds = {"sql": self.sql, "python": self.python, "application": self.application}
        given = [kind for kind, value in kinds.items() if value is not None]
        if len(given) != 1:
            both = (
                f"{' and '.join(given)} are given; keep one" if given else "none is given; add one"
            )
            raise ValueError(f"a job is in sql, in python or an application: {both}")
        for name in ("py_files", "foreach_batch"):
            if getattr(self, name) and self.python is None:
                raise KeyedError((name,), f"{name} belongs to python; remove it")
        if self.application is None:
            if self.tables is None:
                raise KeyedError(("tables",), "the key is missing; add it")
            return self
        if self.confs:
            raise KeyedError(("confs",), "confs of an application are a part of it; move them")
        for name in ("tables", "jars", "output_mode", "key", "reference", "expectations"):
            if getattr(self, name) != type(self).model_fields[name].default:
                raise KeyedError((name,), f"{name} belongs to sql and python; remove it")
        return self

    @model_validator(mode="after")
    def _keyed(self) -> "Job":
        if self.output_mode == "update" and not self.key:
            problem = "output_mode update puts rows out again, and nothing says which replace which"
            raise KeyedError(("key",), f"{problem}; list the columns of the key")
        if twice := sorted({name for name in self.key if self.key.count(name) > 1}):
            raise KeyedError(("key",), f"{twice[0]!r} is listed twice; list it once")
        return self

    @property
    def formulation(self) -> str:
        """The name of what it computes: a job that was changed is another formulation."""
        if self.application is not None:
            main = self.main_file.sha256 if self.main_file else ""
            described = self.application.model_dump(exclude={*FILE_CONFS})
            kind, parts = "application", [main, described]
            if self.shipped_files:
                parts += [self._shipped_hashes]
        else:
            kind = "python" if self.python else "sql"
            parts = [self.text, self.py_texts, self.output_mode, self.key]
            if self.own_tables is not None:
                described = {name: each.described() for name, each in self.own_tables.items()}
                parts += [described, self.input_sha256]
            if self.jars or self.confs:
                parts += [[jar.sha256 for jar in self.jar_files], dict(sorted(self.confs.items()))]
            if self.foreach_batch:
                parts += [self.foreach_batch]
            if self.py_archives:
                parts += [[archive.sha256 for archive in self.py_archives]]
        return f"{kind}-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:_DIGITS]}"

    @property
    def file(self) -> str:
        """The file of its statements or of its function; the script or the JAR."""
        if self.application is not None:
            return self.application.main
        return self.sql or str(self.python).partition(":")[0]

    @property
    def function(self) -> str:
        """The name of its function; '' for statements."""
        return str(self.python).partition(":")[2] if self.python else ""

    @property
    def own_tables(self) -> JobTables | None:
        """Its own tables; None if it reads the events of Nexmark, or is an application."""
        return None if self.tables is None or self.tables == "nexmark" else self.tables

    @property
    def is_proven(self) -> bool:
        """Whether a reference says which rows are right."""
        return bool(self.reference_text)

    def files(self) -> dict[str, bytes]:
        """Return what the cluster is given of it: the content by the path below `own/`.

        ConfigError for a file that is no longer what it was.
        """
        if self.application is not None:
            assert self.main_file is not None
            main = {f"{self.name}/{self.application.file_name}": self.main_file.content()}
            return main | {
                f"{self.name}/{key}/{file.name}": file.content()
                for key, files in self.shipped_files.items()
                for file in files
            }
        described = {
            "name": self.name,
            "formulation": self.formulation,
            "file": self.file,
            "function": self.function,
            "foreach_batch": self.foreach_batch or "",
            "py_files": [_deployed(name) for name in self.py_files],
            "output_mode": self.output_mode,
            "key": list(self.key),
        }
        archives = [name for name in self.py_files if _is_archive(name)]
        modules = [name for name in self.py_files if not _is_archive(name)]
        texts = dict(zip(modules, self.py_texts, strict=True))
        texts |= {"job.json": json.dumps(described, indent=1) + "\n", self.file: self.text}
        contents = {name: text.encode() for name, text in texts.items()}
        shipped = [
            *zip(self.jars, self.jar_files, strict=True),
            *zip(map(_deployed, archives), self.py_archives, strict=True),
        ]
        contents |= {name: file.content() for name, file in shipped}
        return {f"{self.name}/{name}": content for name, content in contents.items()}

    def write(self, jobs: Path) -> None:
        """Write `files` below `jobs`, the directory that `run_query.py --jobs` takes."""
        for path, content in self.files().items():
            (jobs / path).parent.mkdir(parents=True, exist_ok=True)
            (jobs / path).write_bytes(content)

    def in_batches_of(self, rows: int) -> "Job":
        """Return it with streams whose micro-batches have at most this number of rows."""
        if self.own_tables is None:
            return self
        smaller = {
            name: table
            if table.static
            else table.model_copy(update={"rows_per_batch": min(table.rows_per_batch, rows)})
            for name, table in self.own_tables.items()
        }
        return self.model_copy(update={"tables": smaller})

    def jar_paths(self, jobs: Path) -> list[Path]:
        """Return its JARs among the jobs: `jobs` is the directory below which `files` are."""
        return [jobs / self.name / name for name in self.jars]

    def file_confs(self, jobs: Path, confs: Mapping[str, str]) -> dict[str, str]:
        """Return the confs that have the files of an application behind those that they name.

        Args:
            jobs: The directory below which `files` are.
            confs: The confs of the application.
        """
        paths = {
            FILE_CONFS[key]: [str(jobs / self.name / key / file.name) for file in files]
            for key, files in self.shipped_files.items()
        }
        return {
            name: ",".join(filter(None, [confs.get(name), *files])) for name, files in paths.items()
        }

    @property
    def _shipped_hashes(self) -> dict[str, list[tuple[str, str]]]:
        return {
            key: [(file.name, file.sha256) for file in files]
            for key, files in self.shipped_files.items()
        }

    def missing_input(self) -> str:
        """Return a line if the input of an application is a path that this machine has not."""
        path = self.application.input if self.application else None
        if path is None or not path.startswith("/") or Path(path).exists():
            return ""
        file = display(paths.conf_dir() / FOLDER / f"{self.name}.yaml")
        return f"{file}: input: {path} is not on this machine; correct the path"


#: Keys that the loader adds to what a person writes.
_LOADED = (
    *("text", "py_texts", "py_archives", "jar_files", "reference_text", "added"),
    *("main_file", "shipped_files", "input_sha256"),
)


def load_jobs(directory: Path | None = None) -> tuple[dict[str, Job], dict[str, str]]:
    """Return the jobs in `include/conf/jobs`, and what is wrong with the others, by name.

    What is wrong is one line. It stops what names the job, and nothing else.
    """
    folder = (directory or paths.conf_dir()) / FOLDER
    jobs, broken = {}, {}
    for path in sorted(folder.glob("*.yaml")):
        try:
            jobs[path.stem] = read_job(path)
        except ConfigError as error:
            broken[path.stem] = str(error)
    return jobs, _with_other_ending(folder) | broken


#: Keys that only a job has: by these, a file is one whatever its name ends with.
_JOB_KEYS = re.compile(rb"^(?:sql|python|application):", re.MULTILINE)


def _with_other_ending(folder: Path) -> dict[str, str]:
    """Return by name what is wrong with jobs whose files have the other ending of YAML."""
    wrong = "the file of a job ends with .yaml; rename it to"
    return {
        path.stem: f"{display(path)}: {wrong} {path.stem}.yaml"
        for path in sorted(folder.glob("*.yml"))
        if path.is_file() and _JOB_KEYS.search(path.read_bytes())
        if not path.with_suffix(".yaml").exists()
    }


def read_job(path: Path) -> Job:
    """Return the job in a file, with the texts beside it; ConfigError for a mistake."""
    document, name = read(path), path.stem
    _check_name(document, name)
    for key in _LOADED:
        if key in document.data:
            raise document.error((key,), f"unknown key {key!r}; remove it")
    data: dict[str, object] = {**document.data, "name": name}
    if "tables" in data:
        data["tables"] = _tables(document)
    job = document.validated((), Job, data)
    if job.application is not None:
        return job.model_copy(update=_files_of(document, job.application))
    key = "sql" if job.sql else "python"
    texts: dict[str, object] = {"text": _beside(document, key, job.file)}
    texts["jar_files"] = tuple(_job_file(document, ("jars",), name) for name in job.jars)
    archives = [name for name in job.py_files if _is_archive(name)]
    texts["py_archives"] = tuple(_job_file(document, ("py_files",), name) for name in archives)
    texts["py_texts"] = tuple(
        _beside(document, "py_files", name) for name in job.py_files if name not in archives
    )
    if job.python:
        _check_python(document, job)
    if job.reference is not None:
        texts["reference_text"] = _beside(document, "reference", job.reference)
    added: Sequence[AddedExpectation] = ()
    if job.expectations is not None:
        _beside(document, "expectations", job.expectations)
        added = added_of(path.with_name(job.expectations))
    return job.model_copy(update={**texts, "added": tuple(added)})


def _tables(document: Document) -> Literal["nexmark"] | JobTables:
    """Return what a job reads; ConfigError for a mistake."""
    tables = document.data["tables"]
    if tables == "nexmark":
        return "nexmark"
    if not isinstance(tables, Mapping) or not tables:
        remedy = "write nexmark (person, auction and bid), or a name with its files for each table"
        raise document.error(("tables",), f"expected nexmark or tables, got {tables!r}; {remedy}")
    made = {}
    for name, table in tables.items():
        if not TABLE_NAME.fullmatch(name):
            letters = "small letters, digits and _, a letter first"
            raise document.error(("tables", name), f"{name!r} is no name; write {letters}")
        if name in CHECK_TABLES:
            problem = f"{name!r} names a table of the checks; take another name, as {name}_rows"
            raise document.error(("tables", name), problem)
        if not isinstance(table, Mapping):
            remedy = "write its keys below it, as files: orders/*.parquet"
            raise document.error(("tables", name), f"{table!r} is no table; {remedy}")
        made[name] = document.validated(("tables", name), JobTable, table)
    if all(table.static for table in made.values()):
        raise document.error(("tables",), "every table is static; one has to be a stream")
    return made


def _files_of(document: Document, application: JobApplication) -> dict[str, object]:
    """Return what is known of the files of an application; ConfigError if one is missing."""
    shipped = {
        key: tuple(_job_file(document, ("application", key), path) for path in paths)
        for key, paths in application.shipped.items()
        if paths
    }
    main = _job_file(document, ("application", "main"), application.main)
    return {"main_file": main, "shipped_files": shipped}


def _check_python(document: Document, job: Job) -> None:
    """Raise ConfigError for a file that is not Python, or lacks a function of the job."""
    path = document.path.with_name(job.file)
    try:
        tree = ast.parse(read_text(path))
    except SyntaxError as error:
        place = f"{display(path)}:{error.lineno}:{error.offset}"
        raise ConfigError(f"{place}: {error.msg}; correct the line") from None
    except ValueError as error:  # a null byte
        raise ConfigError(f"{display(path)}:1: {error}; save it as text") from None
    known = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    document.look_up(("python",), "function", job.function, known)
    if job.foreach_batch:
        document.look_up(("foreach_batch",), "function", job.foreach_batch, known)


def _check_name(document: Document, name: str) -> None:
    """Raise ConfigError for a name that no job can have."""
    if problem := refused_name(name):
        raise document.error((), problem)
    written = document.data.get("name", name)
    if written != name:
        problem = f"is {written!r}, and the file is {name}.yaml"
        raise document.error(("name",), f"{problem}; write name: {name}, or rename the file")


def _beside(document: Document, key: str, name: str) -> str:
    """Return the text of a file beside the job; ConfigError if it is missing or blank."""
    path = _file(document, (key,), name)
    text = read_text(path)
    if not text.strip():
        raise document.error((key,), f"{display(path)} is empty; write a statement into it")
    return text


def _job_file(document: Document, key: Key, name: str) -> JobFile:
    """Return what is known of a file of the job; ConfigError if it cannot be read."""
    path = _file(document, key, name)
    try:
        return JobFile.of(path)
    except OSError as error:
        problem = f"{display(path)} cannot be read: {error.strerror}; let this user read it"
        raise document.error(key, problem) from None


def _file(document: Document, key: Key, name: str) -> Path:
    """Return a file of the job, by its path from the job's directory on; ConfigError for none."""
    path = document.path.parent / name
    if not path.is_file():
        problem = f"there is no file {display(path)}; write it, or correct the path"
        raise document.error(key, problem)
    return path


def own_job(name: str) -> Job | None:
    """Return the job of a name as it is now in `include/conf/jobs`; None if there is none.

    ConfigError if its files have a mistake.
    """
    return read_job(paths.conf_dir() / FOLDER / f"{name}.yaml") if name in job_names() else None


Jobs: TypeAlias = Mapping[str, Job]
