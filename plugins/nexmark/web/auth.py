"""Who may see and do what: Airflow's own users, sessions and permissions decide.

Whoever may read a DAG sees its nights. Whoever may trigger the DAG ``nexmark_accept`` may accept
here as well. A form is only taken from a page of ours (``forms``).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Any, Literal, Protocol

from nexmark.config import ACCEPT_DAG_ID

User = Any
"""A user as the auth manager of this Airflow has it."""


class Door(Protocol):
    """What the pages ask about their visitors."""

    @property
    def user(self) -> Callable[..., Awaitable[User]]:
        """The FastAPI dependency that returns the user of a request, or refuses it with 401."""

    def name(self, user: User) -> str:
        """Return the name of a user, as it is recorded."""

    def readable(self, user: User, dags: Collection[str]) -> frozenset[str]:
        """Return the DAGs among ``dags`` whose runs a user may read."""

    def may_accept(self, user: User) -> bool:
        """Tell whether a user may accept a night's figures."""

    def login_url(self) -> str:
        """Return where one logs in."""

    def origins(self) -> frozenset[str]:
        """Return the origins at which this Airflow is known to be, beside that of the request."""

    def secret(self) -> str:
        """Return what forms are signed with."""


class AirflowDoor:
    """The door of the Airflow that this process is part of."""

    def __init__(self) -> None:
        """Take Airflow's own way to tell a user: a bearer token, or the cookie of its UI."""
        from airflow.api_fastapi.core_api.security import get_user

        self._user: Callable[..., Awaitable[User]] = get_user

    @property
    def user(self) -> Callable[..., Awaitable[User]]:
        """Airflow's dependency ``get_user``."""
        return self._user

    def name(self, user: User) -> str:
        """Return the name that Airflow shows for the user."""
        return str(user.get_name() or user.get_id())

    def readable(self, user: User, dags: Collection[str]) -> frozenset[str]:
        """Ask the auth manager about the runs of each DAG."""
        from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity

        return frozenset(self._allowed(user, dags, "GET", DagAccessEntity.RUN))

    def may_accept(self, user: User) -> bool:
        """Ask the auth manager whether the user may trigger ``nexmark_accept``."""
        from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity

        return bool(self._allowed(user, [ACCEPT_DAG_ID], "POST", DagAccessEntity.RUN))

    def login_url(self) -> str:
        """Ask the auth manager."""
        from airflow.api_fastapi.app import get_auth_manager

        return str(get_auth_manager().get_url_login())

    def origins(self) -> frozenset[str]:
        """Return that of ``[api] base_url``: a proxy may have told us another name."""
        from urllib.parse import urlsplit

        from airflow.configuration import conf

        url = urlsplit(conf.get("api", "base_url", fallback="") or "")
        return frozenset({f"{url.scheme}://{url.netloc}"} if url.netloc else ())

    def secret(self) -> str:
        """Return the secret key of the API server."""
        from airflow.configuration import conf

        return str(conf.get("api", "secret_key"))

    @staticmethod
    def _allowed(
        user: User, dags: Collection[str], method: Literal["GET", "POST"], entity: Any
    ) -> list[str]:
        from airflow.api_fastapi.app import get_auth_manager
        from airflow.api_fastapi.auth.managers.models.resource_details import DagDetails
        from airflow.models.dag import DagModel

        manager = get_auth_manager()
        teams = DagModel.get_dag_id_to_team_name_mapping(list(dags))
        return [
            dag
            for dag in dags
            if manager.is_authorized_dag(
                method=method,
                access_entity=entity,
                details=DagDetails(id=dag, team_name=teams.get(dag)),
                user=user,
            )
        ]


__all__ = ["AirflowDoor", "Door", "User"]
