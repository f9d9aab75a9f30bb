"""Document 004 as its reader has it: the variables of its container, and the JSON it posts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "documents" / "004"
_BROKER, _BROKER_2, _PORT = "broker:29092", "broker2:29093", "28082"


def variables(broker: str, port: int) -> dict[str, str]:
    """What the container's worker is started with, quotes and all, as `docker-compose` hands it over."""
    text = (FOLDER / "connect.env").read_text().replace(_BROKER, broker).replace(_PORT, str(port))
    return dict(line.split("=", 1) for line in text.splitlines())


def posted(broker: str, broker_2: str) -> dict[str, Any]:
    """The body of its POST."""
    text = (FOLDER / "connectors.json").read_text()
    body: dict[str, Any] = json.loads(text.replace(_BROKER_2, broker_2).replace(_BROKER, broker))
    return body
