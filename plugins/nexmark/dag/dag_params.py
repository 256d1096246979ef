"""The params of the DAGs: JSON schemas, so that Airflow shows a form and refuses a bad value.

A form shows the params that matter first. Airflow folds the others: each belongs to a section.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from airflow.sdk import Param

from nexmark.config import Config, Engine, known_queries
from nexmark.model import Mode
from nexmark.night.params import BUILD, schema_of

SIGNOFF_DAYS = 7
#: The params that a night has whatever begins it, beside build, workload and cluster.
_COMMON = (
    "queries",
    "against",
    "candidate_conf",
    "candidate_job",
    "mode",
    "compatibility",
    "pairs",
    "repetitions",
    "budget_minutes",
    "batches",
)
#: The sections of the forms, folded at first, with their params.
SECTIONS: Mapping[str, tuple[str, ...]] = {
    "What is compared": ("against", "candidate_conf", "candidate_job", "mode", "compatibility"),
    "How much is measured": ("repetitions", "pairs", "budget_minutes", "batches", "verify_scale"),
    "Where it runs": ("engine", "cluster"),
    "How it is decided": ("timeout_days", "go_on_undecided"),
    "To go on with a rollout": ("name", "resume", "accept"),
}


def nightly_params(engine: Engine, config: Config) -> dict[str, Param]:
    """Return the params of the nightly DAG of an engine."""
    params = {
        **{name: _param(name) for name in _COMMON},
        "workload": _one_of("workload", config.workloads, engine.workload),
        "candidate": _param("candidate"),
        "cluster": _one_of("cluster", config.clusters, config.cluster_of(engine)),
    }
    return _form(params, "candidate", "workload", "queries")


def on_demand_params(config: Config) -> dict[str, Param]:
    """Return the params of `nexmark_build`; the build has no default, it must be given."""
    whose = "Whose confs, workload, cluster and accepted builds are used"
    confs = f"{whose}: include/conf/engines.yaml."
    params = {
        "build": _required("build"),
        **{name: _param(name) for name in _COMMON},
        "engine": _one_of("engine", config.engines, config.newest.name, description=confs),
        "workload": _of_engine("workload", config.workloads),
        "cluster": _of_engine("cluster", config.clusters),
    }
    return _form(params, "build", "against", "workload", "queries")


def signoff_params(config: Config) -> dict[str, Param]:
    """Return the params of `nexmark_signoff`; the build has no default, it must be given."""
    workloads, clusters = list(config.workloads), list(config.clusters)
    usual = "nightly" if "nightly" in workloads else workloads[0]
    params = {
        "engine": _one_of("engine", config.engines, config.newest.name),
        "build": _required("build", description=f"The build to sign off: {BUILD}."),
        "against": _param(
            "against",
            description="The build to compare with, the last release say; empty: the build that "
            "was accepted last for each query.",
        ),
        "workload": _one_of("workload", workloads, usual),
        "cluster": _one_of("cluster", clusters, clusters[0]),
        "mode": _one_of(
            "mode",
            [Mode.PAIRED, Mode.BOUNDS],
            Mode.PAIRED,
            description="paired: both builds are measured in this run; bounds: against the "
            "accepted run, to try things.",
        ),
        "pairs": _param("pairs"),
        "budget_minutes": _param("budget_minutes"),
        "batches": _param("batches"),
        "verify_scale": _param("verify_scale", 5, type="number"),
        "compatibility": _param("compatibility", True, type="boolean"),
        "timeout_days": field(
            "Days to decide",
            "After them the run fails: nobody decided.",
            default=SIGNOFF_DAYS,
            type="number",
            exclusiveMinimum=0,
            maximum=365,
        ),
    }
    return _form(params, "build", "against", "workload")


def _form(params: Mapping[str, Param], *first: str) -> dict[str, Param]:
    """Return params in the order of their form: the first ones, then each section's."""
    placed = {name: params[name] for name in first}
    for section, names in SECTIONS.items():
        for name in names:
            if name in params and name not in placed:
                placed[name] = params[name]
                placed[name].schema["section"] = section
    assert placed.keys() == params.keys(), params.keys() - placed.keys()
    return placed


def _param(name: str, default: Any = None, **changes: Any) -> Param:
    """Return a param of `NightParams`, with changes to its schema."""
    return Param(default, **{**schema_of(name), **changes})


def _required(name: str, **changes: Any) -> Param:
    """Return a param of `NightParams` that has no default, with changes to its schema."""
    return Param(**{**schema_of(name), "type": "string", "minLength": 1, **changes})


def _one_of(name: str, known: Iterable[str], default: str, **changes: Any) -> Param:
    """Return a param of `NightParams` whose value is one of the known ones."""
    return _param(name, default, **{"type": "string", "enum": list(known), **changes})


def _of_engine(name: str, known: Iterable[str]) -> Param:
    """Return a param of `NightParams` that the engine gives when it is empty."""
    text = f"include/conf/{name}s.yaml; empty: the engine's own."
    return _param(name, enum=[None, *known], description=text)


def experiment_params(config: Config, experiments: Iterable[str]) -> dict[str, Param]:
    """Return the params of `nexmark_experiment`; the name has no default, it must be given."""
    return {
        "name": field("Experiment", "Of include/conf/experiments.yaml.", enum=list(experiments)),
        "sizes": field(
            "Sizes",
            "Events per micro-batch; empty: the experiment's own.",
            default=None,
            type=["null", "array"],
            items={"type": "integer", "minimum": 100},
        ),
        "pairs": field(
            "Pairs",
            "Runs of each arm at each size.",
            default=4,
            type="integer",
            minimum=1,
            maximum=100,
        ),
        "engine": _one_of("engine", config.engines, config.newest.name),
    }


def rollout_params(config: Config) -> dict[str, Param]:
    """Return the params of `nexmark_rollout`: of a new rollout, or of one to resume."""
    descriptions = {
        "build": f"Of the new arm: {BUILD}; empty: the old one.",
        "against": "Of the old arm, written the same way; empty: the engine's.",
    }
    params = {
        **{name: _param(name) for name in ("stages", "candidate_conf", "repetitions")},
        "go_on_undecided": _param("go_on_undecided", False, type="boolean"),
        **{name: _param(name, description=text) for name, text in descriptions.items()},
        "engine": _one_of("engine", config.engines, config.newest.name),
        "workload": _of_engine("workload", config.workloads),
        "cluster": _of_engine("cluster", config.clusters),
        **{name: _param(name) for name in ("name", "resume", "accept")},
    }
    return _form(params, "stages", "build", "candidate_conf", "workload")


def accept_params() -> dict[str, Param]:
    """Return the params of `nexmark_accept`; run and reason have no default, they must be given."""
    until = "a day (2027-01-31, UTC) or a number of days (30d); empty: without end."
    maybe, given = {"default": "", "type": ["null", "string"]}, {"minLength": 1}
    return {
        "run": field("Run", "The night's run id, or a unique part of it.", **given, maxLength=500),
        "reason": field("Reason", "Why it is accepted; kept on record.", **given, maxLength=2000),
        "by": field(
            "By", "For whom; who triggered the run stands before it.", default="", maxLength=200
        ),
        "queries": field(
            "Queries",
            "A list, or names separated by commas; empty: all of the run.",
            default=None,
            type=["null", "string", "array"],
            items={"type": "string"},
            maxLength=2000,
            examples=list(known_queries()),
        ),
        "expires": field("Expires", f"Until when it counts: {until}", maxLength=20, **maybe),
        "link": field("Link", "Where it was decided, an issue say.", maxLength=2000, **maybe),
    }


def field(title: str, description: str, **schema: Any) -> Param:
    """Return a field in the form of one DAG; a text unless its schema has another type."""
    return Param(**{"type": "string", "title": title, "description": description, **schema})
