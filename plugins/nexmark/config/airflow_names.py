"""The names that our DAGs need in whatever Airflow runs them: the pool and the connections."""

import json

from nexmark.config.clusters import Cluster

#: The Airflow pool that a night's tasks run in; one slot.
POOL = "nexmark_cluster"


def connection_variable(cluster: Cluster) -> tuple[str, str]:
    """Return the environment variable that is the connection of `cluster`: name and value."""
    host, port = cluster.master_url.rsplit(":", 1)
    extra = {"deploy-mode": "client"}
    value = {"conn_type": "spark", "host": host, "port": int(port), "extra": extra}
    return f"AIRFLOW_CONN_{cluster.spark_connection.upper()}", json.dumps(value)
