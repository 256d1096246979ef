"""What the parameters of an address ask for; a link with them shows the same to another person."""

from typing import Annotated

from fastapi import Depends, Query

from nexmark.store.list_filter import ListFilter
from nexmark.store.place_history import Place

_Short = Annotated[str, Query(max_length=200)]


def _wanted(
    engine: _Short = "",
    workload: _Short = "",
    by: _Short = "",
    red: bool = False,
    search: _Short = "",
) -> ListFilter:
    """Return the filter that an address asks for.

    Args:
        engine: the engine; "" for all.
        workload: the workload; "" for all.
        by: who started the night, or accepted the figures; "" for anybody.
        red: whether only red rows are wanted.
        search: a part of a text in the row.
    """
    return ListFilter(engine, workload, by, red, search.strip())


Wanted = Annotated[ListFilter, Depends(_wanted)]  # the dependency of a route


def _place(engine: _Short = "", workload: _Short = "", cluster: _Short = "") -> Place:
    """Return the place that an address asks for.

    Args:
        engine: the engine; "" for any.
        workload: the workload; "" for any.
        cluster: the cluster; "" for any.
    """
    return Place(engine, workload, cluster)


AskedPlace = Annotated[Place, Depends(_place)]  # the dependency of a route
