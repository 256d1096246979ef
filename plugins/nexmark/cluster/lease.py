"""Who uses a cluster: written when it is started, removed when it is stopped."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from nexmark_jobs.host.processes import Process


@dataclass(frozen=True)
class Lease:
    """The night that a cluster was started for.

    Attributes:
        dag_id, run_id: the DAG run.
        holder: the process that the whole night runs in, where it is one (`airflow dags test`);
            None where a scheduler runs the tasks, which then knows whether the run is active.
    """

    dag_id: str
    run_id: str
    holder: Process | None = None

    def same_run(self, other: Lease) -> bool:
        """Whether both are of the same DAG run."""
        return (self.dag_id, self.run_id) == (other.dag_id, other.run_id)

    def write(self, path: Path) -> None:
        """Write as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> Lease | None:
        """The lease in `path`, None if there is none that can be read."""
        try:
            content = json.loads(path.read_text())
            holder = content["holder"]
            return cls(content["dag_id"], content["run_id"], Process(**holder) if holder else None)
        except (OSError, ValueError, KeyError, TypeError):
            return None


__all__ = ["Lease"]
