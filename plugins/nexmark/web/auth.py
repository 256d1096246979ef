"""Decide what each user may see and do, and check that a form comes from a page of ours.

Airflow's own users, sessions and permissions decide. Whoever may read a DAG sees its nights,
whoever may read any DAG of ours sees the figures of brokers, and whoever may trigger the DAG
``nexmark_accept`` may accept here. Browsers do not send Airflow's cookie with a form of another
site (SameSite). In addition, the origin of the request has to be an address that this Airflow knows
as its own, and the form has to contain a token that was signed for its user.
"""

import socket
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Literal
from urllib.parse import urlsplit

from itsdangerous import BadSignature, URLSafeTimedSerializer
from starlette.requests import Request

from nexmark.config import ACCEPT_DAG_ID
from nexmark.errors import NexmarkError
from nexmark.secrets import without_secrets

User = Any  # the class depends on the auth manager that this Airflow uses


class AirflowUnreadable(NexmarkError):
    """Airflow's own database cannot be read."""


@dataclass(frozen=True)
class NextRun:
    """The time at which Airflow starts the next run of a DAG; None if it has no schedule."""

    at: datetime | None
    paused: bool = False


class AirflowAccess:
    """What users may see and do, by the rules of the Airflow that runs this process."""

    @property
    def user(self) -> Callable[..., Awaitable[User]]:
        """Airflow's own FastAPI dependency: the user of a token or cookie; 401 without one."""
        from airflow.api_fastapi.core_api.security import get_user

        return get_user

    def name(self, user: User) -> str:
        """Return the name that Airflow shows for the user; acceptances are recorded with it."""
        return str(user.get_name() or user.get_id())

    def readable(self, user: User, dags: Collection[str]) -> frozenset[str]:
        """Return the DAGs among ``dags`` whose runs a user may read, as the auth manager says."""
        return frozenset(self._allowed(user, dags, "GET"))

    def next_runs(self, dags: Collection[str]) -> Mapping[str, NextRun]:
        """Return the next run of each DAG that Airflow knows, as its scheduler has planned it."""
        from airflow.models.dag import DagModel
        from airflow.utils.session import create_session
        from sqlalchemy import select

        columns = (DagModel.dag_id, DagModel.next_dagrun_create_after, DagModel.is_paused)
        query = select(*columns).where(DagModel.dag_id.in_(dags), ~DagModel.is_stale)
        with _reading(), create_session() as session:
            return {dag: NextRun(at, paused) for dag, at, paused in session.execute(query)}

    def is_running(self, dag: str, run: str) -> bool | None:
        """Tell whether a run of a DAG goes on; None if Airflow has no such run (any more)."""
        from airflow.models.dagrun import DagRun
        from airflow.utils.session import create_session
        from airflow.utils.state import State
        from sqlalchemy import select

        query = select(DagRun.state).where(DagRun.dag_id == dag, DagRun.run_id == run)
        with _reading(), create_session() as session:
            state = session.scalar(query)
        return None if state is None else state in State.unfinished_dr_states

    def may_accept(self, user: User) -> bool:
        """Return whether the user may trigger ``nexmark_accept``, as the auth manager says."""
        return bool(self._allowed(user, [ACCEPT_DAG_ID], "POST"))

    def login_url(self) -> str:
        """Return the address of the login page."""
        from airflow.api_fastapi.app import get_auth_manager

        return str(get_auth_manager().get_url_login())

    def origins(self) -> frozenset[str]:
        """Return the origin of ``[api] base_url``; a proxy may use another name in its requests."""
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
        from airflow.api_fastapi.auth.managers.models import resource_details
        from airflow.models.dag import DagModel

        manager = get_auth_manager()
        with _reading():
            teams = DagModel.get_dag_id_to_team_name_mapping(list(dags))
            return [
                dag
                for dag in dags
                if manager.is_authorized_dag(
                    method=method,
                    access_entity=resource_details.DagAccessEntity.RUN,
                    details=resource_details.DagDetails(id=dag, team_name=teams.get(dag)),
                    user=user,
                )
            ]


@contextmanager
def _reading() -> Iterator[None]:
    """Raise AirflowUnreadable if Airflow's own database fails, so that it is not taken for ours."""
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except SQLAlchemyError as error:
        cause = without_secrets(str(getattr(error, "orig", None) or error))
        raise AirflowUnreadable(
            f"Airflow's own database: {cause}; see that it runs and is migrated"
            " (`airflow db check`), then load the page again"
        ) from error


SALT = "nexmark-form"
HOURS = 12
"""How long the forms of a page are valid; after that the page has to be loaded again."""
_PORTS = {"http": 80, "https": 443}
_LOOPBACK = frozenset({"127.0.0.1", "[::1]", "localhost"})


class ForgedForm(NexmarkError):
    """A form that does not come from a page of ours."""


def form_token(secret: str, user: str) -> str:
    """Return the signed token for the forms of a user."""
    return str(URLSafeTimedSerializer(secret, salt=SALT).dumps(user))


def check_form(
    request: Request, given: str, secret: str, user: str, origins: Collection[str]
) -> None:
    """Raise ForgedForm if a form is from another site or user, or is older than ``HOURS``.

    Args:
        request: the request with the form.
        given: the token in the form.
        secret: the key that signs tokens.
        user: the name of the user who sent the request.
        origins: the origins that Airflow knows as its own.
    """
    _check_origin(request, origins)
    try:
        owner = URLSafeTimedSerializer(secret, salt=SALT).loads(given, max_age=HOURS * 3600)
    except BadSignature:
        owner = None
    if owner != user:
        raise ForgedForm("this form is out of date; load the page again and repeat it")


def _check_origin(request: Request, origins: Collection[str]) -> None:
    """Raise ForgedForm if the origin of a request is not ours; browsers send it in a header."""
    refused = ForgedForm(
        "this form was sent from another site; nothing was done (if it was not, Airflow does not "
        "know its own address: set AIRFLOW__API__BASE_URL)"
    )
    site = request.headers.get("sec-fetch-site")
    if site is not None and site != "same-origin":
        raise refused
    referer = urlsplit(request.headers.get("referer", ""))
    origin = request.headers.get("origin") or f"{referer.scheme}://{referer.netloc}"
    if origin not in {*origins, *_of_this_server(request)}:
        raise refused


def _of_this_server(request: Request) -> set[str]:
    """Return the origins of the socket that received the request; a sender can forge ``Host``."""
    host, port = request.scope.get("server") or ("", None)
    scheme = request.url.scheme
    place = "" if port in (None, _PORTS.get(scheme)) else f":{port}"
    names = {f"[{host}]" if ":" in host else host, socket.gethostname(), _full_name()}
    if names & _LOOPBACK:
        names |= _LOOPBACK
    return {f"{scheme}://{name}{place}" for name in names if name}


_full_name = cache(socket.getfqdn)  # this call needs the network, so it is made only once
