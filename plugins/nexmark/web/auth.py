"""Who may see and do what: Airflow's own users, sessions and permissions decide.

Whoever may read a DAG sees its nights. Whoever may trigger the DAG ``nexmark_accept`` may accept
here as well. A form is only taken from a page of ours (``forms``).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from nexmark.config import ACCEPT_DAG_ID

User = Any
"""A user as the auth manager of this Airflow has it."""


@dataclass(frozen=True)
class NextRun:
    """When Airflow starts the next run of a DAG; None where it has no schedule."""

    at: datetime | None
    paused: bool = False


class Door:
    """The door of the Airflow that this process is part of."""

    @property
    def user(self) -> Callable[..., Awaitable[User]]:
        """Airflow's own dependency that tells a user: by a bearer token, or its UI's cookie.

        It refuses anybody else with 401.
        """
        from airflow.api_fastapi.core_api.security import get_user

        return get_user

    def name(self, user: User) -> str:
        """Return the name that Airflow shows for the user, as it is recorded."""
        return str(user.get_name() or user.get_id())

    def readable(self, user: User, dags: Collection[str]) -> frozenset[str]:
        """Return the DAGs among ``dags`` whose runs a user may read, as the auth manager says."""
        return frozenset(self._allowed(user, dags, "GET"))

    def next_runs(self, dags: Collection[str]) -> Mapping[str, NextRun]:
        """Return when each DAG that Airflow knows runs next, as its scheduler notes it."""
        from airflow.models.dag import DagModel
        from airflow.utils.session import create_session
        from sqlalchemy import select

        columns = (DagModel.dag_id, DagModel.next_dagrun_create_after, DagModel.is_paused)
        query = select(*columns).where(DagModel.dag_id.in_(dags), ~DagModel.is_stale)
        with create_session() as session:
            return {dag: NextRun(at, paused) for dag, at, paused in session.execute(query)}

    def may_accept(self, user: User) -> bool:
        """Tell whether the user may trigger ``nexmark_accept``, as the auth manager says."""
        return bool(self._allowed(user, [ACCEPT_DAG_ID], "POST"))

    def login_url(self) -> str:
        """Return where one logs in."""
        from airflow.api_fastapi.app import get_auth_manager

        return str(get_auth_manager().get_url_login())

    def origins(self) -> frozenset[str]:
        """Return the origin of ``[api] base_url``; a proxy may use another name in its requests."""
        from urllib.parse import urlsplit

        from airflow.configuration import conf

        url = urlsplit(conf.get("api", "base_url", fallback="") or "")
        return frozenset({f"{url.scheme}://{url.netloc}"} if url.netloc else ())

    def secret(self) -> str:
        """Return the secret key of the API server, which signs forms."""
        from airflow.configuration import conf

        return str(conf.get("api", "secret_key"))

    @staticmethod
    def _allowed(user: User, dags: Collection[str], method: Literal["GET", "POST"]) -> list[str]:
        """Return the DAGs whose runs a user may read (GET) or trigger (POST)."""
        from airflow.api_fastapi.app import get_auth_manager
        from airflow.api_fastapi.auth.managers.models.resource_details import (
            DagAccessEntity,
            DagDetails,
        )
        from airflow.models.dag import DagModel

        manager = get_auth_manager()
        teams = DagModel.get_dag_id_to_team_name_mapping(list(dags))
        return [
            dag
            for dag in dags
            if manager.is_authorized_dag(
                method=method,
                access_entity=DagAccessEntity.RUN,
                details=DagDetails(id=dag, team_name=teams.get(dag)),
                user=user,
            )
        ]
