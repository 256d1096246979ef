"""What a night does and where it is written: plan, run directory, submissions. No Airflow."""
