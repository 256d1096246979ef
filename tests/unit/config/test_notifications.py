"""A notifier that cannot be loaded is reported with file and line; no notifiers cost nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from airflow.sdk import Context

from nexmark.config import ConfigError
from nexmark.config.experiment_models import Notification, load_notifications
from nexmark.dag.notifying import careful, notifiers

SMTP = "airflow.providers.smtp.notifications.smtp.SmtpNotifier"


@pytest.fixture
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NEXMARK_CONF", str(tmp_path))
    return tmp_path / "notifications.yaml"


def test_no_file_and_an_empty_list_are_nobody(conf: Path) -> None:
    assert load_notifications() == []
    conf.write_text("notifications: []\n")
    assert load_notifications() == []


def test_a_notifier_is_made_with_its_kwargs(conf: Path) -> None:
    conf.write_text(
        f"notifications:\n  - notifier: {SMTP}\n"
        "    kwargs: {to: [a@example.org], from_email: b@example.org, subject: '{{ run_id }}'}\n"
    )
    (made,) = notifiers()
    assert (made.to, made.subject) == (["a@example.org"], "{{ run_id }}")


def test_an_error_names_the_place_once(conf: Path) -> None:
    conf.write_text(f"notifications:\n  - notifier: {SMTP}\n    kwargs: {{}}\n")
    (entry,) = load_notifications()
    assert str(entry.error("it is wrong")) == f"{conf}:2: notifications.0: it is wrong"


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("notification: []", 1, "unknown key 'notification'"),
        ("notifications:\n  - notifier: x.Y\n    args: {}", 2, "expected notifier and kwargs"),
        ("notifications:\n  - kwargs: {}", 2, "the key is missing; add it"),
        ("notifications:\n  - notifier: SmtpNotifier", 2, "import path of a class"),
        ("notifications:\n  - notifier: no.such.Notifier", 2, "cannot be imported: No module"),
        ("notifications:\n  - notifier: json.JSONNone", 2, "cannot be imported"),
        ("notifications:\n  - notifier: json.JSONDecoder", 2, "is not an Airflow notifier"),
        (
            f"notifications:\n  - notifier: {SMTP}\n    kwargs: {{too: x}}",
            2,
            "refuses its kwargs",
        ),
        (
            f"notifications:\n  - notifier: {SMTP}\n    kwargs:\n      password: x",
            3,
            "password is a secret; put it into an Airflow connection",
        ),
        (
            f"notifications:\n  - notifier: {SMTP}\n    kwargs:\n"
            "      to: x\n      extra: {proxies: ['http://ada:hush@proxy/']}",
            3,
            "proxies is a secret; put it into an Airflow connection",
        ),
    ],
)
def test_what_is_wrong_is_reported_with_its_line(
    conf: Path, text: str, line: int, says: str
) -> None:
    conf.write_text(text + "\n")
    with pytest.raises(ConfigError) as error:
        notifiers()
    message = str(error.value)
    assert f"notifications.yaml:{line}: " in message
    assert says in message
    assert "\n" not in message


def test_a_notifier_that_fails_does_not_keep_the_question_from_being_asked(conf: Path) -> None:
    conf.write_text(
        f"notifications:\n  - notifier: {SMTP}\n"
        "    kwargs: {to: [a@example.org], from_email: b@example.org, subject: '{{ no.such }}'}\n"
    )
    (made,) = notifiers()
    with pytest.raises(Exception, match="undefined"):
        made({})
    careful(made)(Context())


def test_the_name_of_a_connection_is_no_secret() -> None:
    kwargs = {"slack_webhook_conn_id": "hook", "token_conn_id": "x", "text": "red"}
    assert Notification(notifier="a.B", kwargs=kwargs).kwargs == kwargs
