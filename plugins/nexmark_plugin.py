"""Register with Airflow what `nexmark.web` has for its API server; nothing else.

Every component of Airflow and every task imports this: nothing heavy may be imported here.
"""

from typing import Any
from urllib.parse import urlsplit

from airflow.configuration import conf
from airflow.plugins_manager import AirflowPlugin

from nexmark.web.entry import PREFIX, EntryPoint
from nexmark.web.refused_params import RefusedParams

_PAGES = urlsplit(conf.get("api", "base_url", fallback="") or "").path.rstrip("/") + PREFIX


def _view(destination: str, route: str, path: str) -> dict[str, Any]:
    """Return an external view: Airflow shows our page in a tab, or as an entry of its menu."""
    where = {"destination": destination, "url_route": route}
    return {"name": "Nexmark", "href": f"{_PAGES}{path}", **where}


class NexmarkPlugin(AirflowPlugin):
    """The results of the nights, in Airflow's own pages."""

    name = "nexmark"
    fastapi_apps = [{"app": EntryPoint(), "url_prefix": PREFIX, "name": "Nexmark"}]  # noqa: RUF012
    fastapi_root_middlewares = [  # noqa: RUF012
        {"middleware": RefusedParams, "name": "Nexmark: which param is refused, in one line"}
    ]
    external_views = [  # noqa: RUF012
        {**_view("nav", "nexmark", "/"), "nav_top_level": True},
        _view("dag", "nexmark-dag", "/dag/{DAG_ID}"),
        _view("dag_run", "nexmark-night", "/night/{DAG_ID}/{RUN_ID}"),
        _view("task", "nexmark-task", "/dag/{DAG_ID}/task/{TASK_ID}"),
        _view("task_instance", "nexmark-query", "/night/{DAG_ID}/{RUN_ID}/task/{TASK_ID}"),
    ]
