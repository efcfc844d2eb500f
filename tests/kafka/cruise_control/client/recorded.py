"""Recorded answers of a real Cruise Control as responses, and clients that give scripted responses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plimsoll.web.client import RequestFailed, Response

if TYPE_CHECKING:
    from plimsoll.web.client import Request

ANSWERS = Path(__file__).parents[3] / "fixtures" / "cruise_control"
NAMES = sorted(path.stem for path in ANSWERS.glob("*.json"))


def read_recorded(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((ANSWERS / f"{name}.json").read_text(encoding="utf-8"))
    return content


def build_response(name: str) -> Response:
    """The recorded response."""
    recorded = read_recorded(name)["response"]
    body = json.dumps(recorded["json"]).encode() if "json" in recorded else recorded["text"].encode()
    headers = {key.lower(): value for key, value in recorded["headers"].items()}
    return Response(status=recorded["status"], body=body, headers=headers)


class ScriptedClient:
    """Gives these answers, one per request, and keeps the requests."""

    def __init__(self, *answers: Response | RequestFailed) -> None:
        self._answers = list(answers)
        self.requests: list[Request] = []

    async def send(self, request: Request) -> Response | RequestFailed:
        self.requests.append(request)
        return self._answers.pop(0)
