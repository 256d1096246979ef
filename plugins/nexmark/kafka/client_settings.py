"""Read the settings of a Kafka client from a file."""

import json
from pathlib import Path

from nexmark.kafka import KafkaError

_REMEDY = 'write it as the extra of an Airflow connection: {"security.protocol": "SASL_SSL", ...}'


def read_settings(path: Path) -> dict[str, str]:
    """Return the settings in a JSON file, by librdkafka's names, as an Airflow connection has them.

    KafkaError for a file that cannot be read, or is no JSON object of plain values. The text of the
    error has no value of the file, since some are secrets.
    """
    try:
        settings = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise KafkaError(f"client settings {path}: {error.strerror}; name a JSON file") from None
    except UnicodeDecodeError:
        raise KafkaError(f"client settings {path}: the file is no text; {_REMEDY}") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise KafkaError(f"client settings {path}, {place}: no JSON; {_REMEDY}") from None
    if not isinstance(settings, dict):
        raise KafkaError(f"client settings {path}: no JSON object; {_REMEDY}")
    for name, value in settings.items():
        if not isinstance(value, str | int | float):
            problem = f"{name} is no text, number or truth value"
            raise KafkaError(f"client settings {path}: {problem}; {_REMEDY}")
    return {name: str(value) for name, value in settings.items()}
