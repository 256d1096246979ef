"""One request by one person: what they may see, looked up in the store."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

from fastapi import Depends, HTTPException
from starlette.requests import Request
from starlette.responses import Response

from nexmark.errors import NexmarkError
from nexmark.store import Store, StoreError, history
from nexmark.store.models import Night
from nexmark.web import forms, templating
from nexmark.web.auth import Door, User


class NotFound(NexmarkError):
    """What was asked for is not there, or not for this person's eyes."""


@dataclass
class Visit:
    """What a route has at hand."""

    request: Request
    user: User

    @property
    def door(self) -> Door:
        """The door that the visitor came in by."""
        found: Door = self.request.app.state.door
        return found

    @cached_property
    def store(self) -> Store:
        """The results database."""
        found: Store = self.request.app.state.database.store()
        return found

    @cached_property
    def dags(self) -> frozenset[str]:
        """The DAGs with nights whose runs the visitor may read."""
        return self.door.readable(self.user, history.dag_ids(self.store))

    @cached_property
    def name(self) -> str:
        """The visitor's name."""
        return self.door.name(self.user)

    @cached_property
    def may_accept(self) -> bool:
        """Whether the visitor may accept figures."""
        return self.door.may_accept(self.user)

    def night(self, dag: str, run: str) -> Night:
        """Return a night that the visitor may see; NotFound for any other."""
        name = f"{dag}/{run}"
        if dag in self.dags:
            try:
                return self.store.night(name)
            except StoreError as error:
                if "is not recorded" not in str(error):
                    raise
        raise NotFound(
            f"there is no night {name!r}: its preflight has not passed (yet), or it is not for "
            "you to see; the list of nights has all others"
        )

    def token(self) -> str:
        """Return what a form of this visitor carries."""
        return forms.token(self.door.secret(), self.name)

    def check(self, given: str) -> None:
        """Refuse a form that is not from a page of this visitor."""
        forms.check_form(self.request, given, self.door.secret(), self.name, self.door.origins())

    def page(self, template: str, section: str, **content: Any) -> Response:
        """Return a page; ``section`` is the entry of the menu that it belongs to."""
        return templating.render(
            self.request,
            template,
            section=section,
            visitor=self.name,
            may_accept=self.may_accept,
            token=self.token if self.may_accept else None,
            **content,
        )


def _visit(request: Request) -> Visit:
    """Return the visit of who was let in (``app.create_app``); nobody else has one."""
    user = getattr(request.state, "nexmark_user", None)
    if user is None:
        raise HTTPException(401, "Not authenticated")
    return Visit(request, user)


Visiting = Annotated[Visit, Depends(_visit)]
"""What a route asks for."""

__all__ = ["NotFound", "Visit", "Visiting"]
