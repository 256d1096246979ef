"""Where things are: the configuration, and everything the package writes."""

import os
import re
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def repository() -> Path:
    """Return the directory with `dags/`, `include/` and `plugins/`: the clone or a wheel's copy."""
    return _PACKAGE.parents[1] if _PACKAGE.parent.name == "plugins" else _PACKAGE / "site"


def conf_dir() -> Path:
    """Return the directory of the YAML files: $NEXMARK_CONF, or `include/conf` of `repository`."""
    configured = os.environ.get("NEXMARK_CONF")
    return Path(configured).resolve() if configured else repository() / "include" / "conf"


def home() -> Path:
    """Return where everything that is written goes: $NEXMARK_HOME, or `.nexmark` in the clone.

    Installed from a wheel: `.nexmark` in the home directory of the user.
    """
    configured = os.environ.get("NEXMARK_HOME")
    if configured:
        return Path(configured).resolve()
    root = repository()
    return (Path.home() if root.is_relative_to(_PACKAGE) else root) / ".nexmark"


def builds_dir() -> Path:
    """Return the cache of Spark builds; a link to another home's shares its class archives."""
    return (home() / "builds").resolve()


def example_mark() -> Path:
    """Return the file that only the home of the example nights has."""
    return home() / "example.txt"


def is_example() -> bool:
    """Tell whether the home is the example's: its nights were simulated, not measured."""
    return example_mark().exists()


def run_dir(dag_id: str, run_id: str) -> Path:
    """Return the directory of one DAG run: `<home>/runs/<dag_id>/<run_id made safe>`."""
    return home() / "runs" / dag_id / safe_name(run_id)


def safe_name(text: str) -> str:
    """Return `text` as one file name: what is not a letter, digit, `.`, `_` or `-` becomes `_`."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", text).lstrip(".") or "_"


def database_url() -> str:
    """Return the SQLAlchemy URL of the results database: $NEXMARK_DB, or SQLite under home."""
    return os.environ.get("NEXMARK_DB") or f"sqlite:///{home() / 'results.db'}"


def airflow_database_url() -> str:
    """Return the URL of the private Airflow's database: $NEXMARK_AIRFLOW_DB, or a SQLite file."""
    return os.environ.get("NEXMARK_AIRFLOW_DB") or f"sqlite:///{home() / 'airflow' / 'airflow.db'}"
