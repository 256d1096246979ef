"""Keeps what was read of the results database until somebody writes to it."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from copy import copy
from functools import wraps
from threading import Lock
from typing import TYPE_CHECKING, Concatenate, Final, ParamSpec, TypeVar, cast

if TYPE_CHECKING:
    from nexmark.store.reading import Reader

_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")
_Reads = TypeVar("_Reads", bound="Reader")

MOST = 64
"""The largest number of results that are kept."""
NOTHING: Final = object()
"""What ``KeptReads.get`` returns if nothing is kept."""


class KeptReads:
    """The results of functions that read, as long as the database stays as it is.

    The threads of a process share them.
    """

    def __init__(self) -> None:
        """Keep nothing yet."""
        self._changes = -1
        self._results: OrderedDict[Hashable, object] = OrderedDict()
        self._lock = Lock()

    def get(self, changes: int, key: Hashable) -> object:
        """Return the result that is kept for a key; NOTHING if there is none.

        ``changes`` is the number of transactions that have written to the database so far. Where it
        is another one than before, nothing that was kept holds any more.
        """
        with self._lock:
            if changes != self._changes:
                self._results.clear()
                self._changes = changes
            if key not in self._results:
                return NOTHING
            self._results.move_to_end(key)
            return self._results[key]

    def put(self, changes: int, key: Hashable, result: object) -> None:
        """Keep a result that was read after ``changes``, unless somebody has written since."""
        with self._lock:
            if changes == self._changes:
                self._results[key] = result
                if len(self._results) > MOST:
                    self._results.popitem(last=False)


def kept_until_written(
    made: Callable[Concatenate[_Reads, _Given], _Made],
) -> Callable[Concatenate[_Reads, _Given], _Made]:
    """Decorate a function whose first argument is a store, so that its result is kept.

    The result is kept until somebody writes to the database. It may depend on nothing but the
    database and the arguments: on no clock and no file. Each caller has a copy, but shares what is
    in it. The function reads at one moment.
    """

    @wraps(made)
    def kept(store: _Reads, /, *args: _Given.args, **kwargs: _Given.kwargs) -> _Made:
        with store.at_one_moment() as moment:
            key = (made, key_of(args), key_of(kwargs))
            changes = moment.changes()
            result = moment.kept.get(changes, key)
            if result is NOTHING:
                result = made(moment, *args, **kwargs)
                moment.kept.put(changes, key, result)
            return copy(cast(_Made, result))

    return kept


def key_of(value: object) -> Hashable:
    """Return an argument of a function that reads as a part of a key; a row counts by its id."""
    identity = getattr(value, "id", None)
    if identity is not None:
        return type(value).__name__, identity
    if isinstance(value, Mapping):
        return frozenset((name, key_of(each)) for name, each in value.items())
    if isinstance(value, Set):
        return frozenset(map(key_of, value))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(map(key_of, value))
    assert isinstance(value, Hashable)
    return value
