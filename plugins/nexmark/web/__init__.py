"""The pages behind the Nexmark tab of Airflow: last night, its queries, builds, the gate."""
