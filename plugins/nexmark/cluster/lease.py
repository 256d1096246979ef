"""Keep two nights from one cluster: a night claims the lease before it starts anything there."""

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from nexmark.errors import NexmarkError
from nexmark_jobs.host.leases import locked
from nexmark_jobs.host.processes import Process
from nexmark_jobs.host.whole_files import write_whole


class ClusterError(NexmarkError):
    """The cluster cannot be started, reached or used; one line with the remedy."""


@dataclass(frozen=True)
class Lease:
    """The night that has a cluster.

    `holder` is the one process that runs the whole night (`airflow dags test`). It is None if a
    scheduler runs the tasks; then Airflow knows whether the run is active. `command` is the process
    of the command of this package that runs the night or the scheduler, and the night ends with it;
    it is None in an Airflow of your own.
    """

    dag_id: str
    run_id: str  # "" if a command has not begun the run yet
    holder: Process | None = None
    command: Process | None = None

    def __str__(self) -> str:
        """Return the name of the night, for messages."""
        run = f" run {self.run_id}" if self.run_id else ""
        process = f" (process {self.holder.pid})" if self.holder else ""
        return f"{self.dag_id}{run}{process}"

    def same_run(self, other: "Lease") -> bool:
        """Return whether both belong to one DAG run, or to one process that will begin a run."""
        mine, theirs = (self.dag_id, self.run_id), (other.dag_id, other.run_id)
        return mine == theirs and (bool(self.run_id) or self.holder == other.holder)

    def goes_on(self, is_active: "Callable[[Lease], bool]") -> bool:
        """Return whether the night is still active; without a holder, as `is_active` says."""
        return self.holder.alive if self.holder else is_active(self)


@dataclass(frozen=True)
class LeaseFile:
    """The lease of the cluster `name`, in `path`."""

    path: Path
    name: str

    def holder(self) -> Lease | None:
        """Return the current lease, or None.

        Raises:
            ClusterError: It cannot be read, so a night may have it.
        """
        try:
            content = json.loads(self.path.read_text())
            processes = (content["holder"], content["command"])
            known = (Process(**process) if process else None for process in processes)
            return Lease(content["dag_id"], content["run_id"], *known)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            held = "so it counts as held; if no night runs on this cluster, remove the file"
            raise ClusterError(f"lease {self.path}: cannot be read ({error}), {held}") from None

    def claim(self, mine: Lease, is_active: Callable[[Lease], bool]) -> bool:
        """Check and claim in one step; return False if this DAG run had the lease already.

        Args:
            mine: The lease of the night.
            is_active: Tells whether a night without a `holder` is still active.

        Raises:
            ClusterError: Another night has the cluster, or the lease cannot be read or written.
        """
        with self._locked():
            other = self.holder()
            known = other is not None and other.same_run(mine)
            if other is not None and not known and other.goes_on(is_active):
                remedy = "wait until it has ended, or end it"
                raise ClusterError(f"cluster {self.name}: in use by {other}; {remedy}")
            write_whole(self.path, json.dumps(asdict(mine)))
        return not known

    def release(self) -> None:
        """Remove the lease; only the night that has it may call this."""
        with self._locked():
            self.path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            with locked(self.path.parent.with_suffix(".lock")):  # beside the directory, not in it
                yield
        except OSError as error:  # TimeoutError, too
            why = error.strerror or error
            remedy = "see that its directory can be written and that no other command is stuck"
            raise ClusterError(f"lease {self.path}: cannot be claimed ({why}); {remedy}") from None
