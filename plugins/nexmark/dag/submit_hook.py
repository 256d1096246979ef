"""The provider's spark-submit hook, whose log tells how far the night is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

from nexmark.night.eta import Watch

if TYPE_CHECKING:
    from airflow.sdk.types import Logger


class WatchedSubmitHook(SparkSubmitHook):
    """The provider's hook; what an application prints goes by a watch on its way into the log."""

    def __init__(self, watch: Watch, **arguments: Any) -> None:
        """`arguments` are the provider's."""
        self._watch = watch
        super().__init__(**arguments)

    @property
    def log(self) -> Logger:
        """The logger of the hook, which gets every line of spark-submit's output."""
        return _WatchedLog(super().log, self._watch)


class _WatchedLog:
    """A logger whose lines of progress say where in the night they are."""

    def __init__(self, log: Logger, watch: Watch) -> None:
        self._log = log
        self._watch = watch

    def info(self, event: str, *args: Any, **kwargs: Any) -> None:
        """Log a line."""
        self._log.info(self._watch.line(event), *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)
