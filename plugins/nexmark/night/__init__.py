"""The plan of a night, its run directory and its submissions, without Airflow."""
