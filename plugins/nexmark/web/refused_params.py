"""Say in our words which param of a DAG run Airflow has refused, where it would dump a JSON schema.

Airflow checks the params of a run by the JSON schemas of `nexmark.dag.dag_params` before it makes
the run, and answers with jsonschema's own text: the whole schema, and the value. The form and the
clients of the REST API show that answer as it is.
"""

from __future__ import annotations

import ast
import asyncio
import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_RUNS = re.compile(r"/dags/nexmark_[^/]+/dagRuns$")
_REFUSED = re.compile(r"Invalid input for param (\w+): (.+)", re.S)
_NAMES = re.compile(r".* is not one of (\[.*\])", re.S)
_SCHEMA = "Failed validating"
_BAD_REQUEST = 400


class RefusedParams:
    """A middleware of Airflow's API server; it changes nothing but the text of such an answer."""

    def __init__(self, app: ASGIApp) -> None:
        """Keep the application that answers the requests."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and put its answer into our words if a param of a run is refused."""
        if scope.get("method") != "POST" or not _RUNS.search(scope["path"]):
            await self._app(scope, receive, send)
            return
        given, refused = bytearray(), bytearray()
        begun: list[Message] = []  # the beginning of the answer, if it is a refusal

        async def hear() -> Message:
            message = await receive()
            given.extend(message.get("body", b""))
            return message

        async def tell(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == _BAD_REQUEST:
                begun.append(message)
            elif not begun:
                await send(message)
            else:
                refused.extend(message.get("body", b""))
                if not message.get("more_body"):
                    answer = await asyncio.to_thread(in_our_words, bytes(refused), bytes(given))
                    length = (b"content-length", str(len(answer)).encode())
                    headers = [each for each in begun[0]["headers"] if each[0] != length[0]]
                    await send({**begun[0], "headers": [*headers, length]})
                    await send({"type": "http.response.body", "body": answer})

        plain = [each for each in scope["headers"] if each[0] != b"accept-encoding"]
        await self._app({**scope, "headers": plain}, hear, tell)


def in_our_words(answer: bytes, request: bytes) -> bytes:
    """Return an answer with its refusal in one line; another answer as it is.

    Args:
        answer: The body of Airflow's answer, JSON.
        request: The body of the request, JSON.
    """
    try:
        refusal = json.loads(answer)
        refused = _REFUSED.match(refusal["detail"])
        conf = json.loads(request).get("conf") or {}
    except (ValueError, TypeError, KeyError, AttributeError):
        return answer
    if refused is None:
        return answer
    line = problem_line(refused[1], conf, refused[2])
    return json.dumps({**refusal, "detail": line}).encode()


def problem_line(name: str, conf: dict[str, Any], reason: str) -> str:
    """Return in one line why a param was refused: what is wrong, and what to do.

    Args:
        name: The name of the param.
        conf: What the run was given.
        reason: The reason as jsonschema tells it, with the schema and the value.
    """
    from nexmark.errors import suggest
    from nexmark.night.make_night import param_problem

    if name not in conf:
        return f"{name}: is not given; give it"
    first = " ".join(reason.partition(_SCHEMA)[0].split())
    if names := _NAMES.fullmatch(first):
        known = [each for each in ast.literal_eval(names[1]) if isinstance(each, str)]
        return f"{name}: unknown {name} {conf[name]!r}; {suggest(conf[name], known)}"
    return param_problem(name, conf[name]) or f"{name}: {first}; correct it"
