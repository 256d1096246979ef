"""Why a query got slower: pairs of repetitions in, an explanation out. Pure: no I/O, no Airflow."""
