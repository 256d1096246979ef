"""What Airflow gives its PostgreSQL driver; each of its processes imports this."""

#: PgBouncer gives the sessions of the server to others: a prepared statement would stay there.
UNPREPARED = {"prepare_threshold": None}
