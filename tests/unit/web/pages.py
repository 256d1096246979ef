"""Addresses of pages, and what they show."""

from __future__ import annotations

from fastapi.testclient import TestClient

from nexmark.report.rendering import part

EVERYWHERE = (
    *("/", "/newest", "/nights", "/builds", "/compare", "/signoffs", "/experiments"),
    *("/gate", "/kafka", "/acks", "/queries"),
)
"""The pages of the menu, and the newest night."""


def at(run: str, *more: str) -> str:
    dag, _, run_id = run.partition("/")
    return "/".join([f"/night/{part(dag)}/{part(run_id)}", *more])


def shown(browser: TestClient, path: str) -> str:
    response = browser.get(path)
    assert response.status_code == 200, response.text[:500]
    return response.text
