"""The options that Airflow gives its PostgreSQL driver; each of its processes imports this file."""

#: PgBouncer lends a session of the server to one client after another, so no statement may be
#: prepared in it.
UNPREPARED = {"prepare_threshold": None}
