"""`/admin/loggers`: levels of logging, of this worker or of all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.api import bodies
from heliograph.api.errors import NO_LEVEL, TOO_MANY_LOGGERS, UNKNOWN_LEVEL, UNKNOWN_LOGGER
from heliograph.api.exchange import Answer, json_answer
from heliograph.worker.log_levels import LONGEST_LOGGER_NAME, MOST_UNUSED_LOGGERS, parse_level

if TYPE_CHECKING:
    from heliograph.api.exchange import Call
    from heliograph.worker.log_levels import LoggerLevel


def list_loggers(call: Call) -> Answer:
    """Every logger in use."""
    return json_answer({name: _shown(level) for name, level in call.worker.log_levels.all().items()})


def get_logger(call: Call) -> Answer:
    """One logger."""
    name = call.path["logger"]
    level = call.worker.log_levels.get(name)
    if level is None:
        raise UNKNOWN_LOGGER.error(name=name)
    return json_answer(_shown(level))


def set_level(call: Call) -> Answer:
    """Give a logger and those below it a level; with `scope=cluster` on every worker."""
    name = call.path["logger"]
    wanted = bodies.config_map(call.body).get("level")
    if wanted is None:
        raise NO_LEVEL.error()
    level = parse_level(wanted)
    if level is None:
        raise UNKNOWN_LEVEL.error(level=wanted)
    if not call.worker.log_levels.may_set(name):
        raise TOO_MANY_LOGGERS.error(length=LONGEST_LOGGER_NAME, most=MOST_UNUSED_LOGGERS)
    if call.query.get("scope", ["worker"])[0].lower() == "cluster":
        call.herder.set_cluster_log_level(name, level)
        return Answer(204)
    return json_answer(call.worker.log_levels.set(name, level))


def _shown(level: LoggerLevel) -> dict[str, object]:
    return {"level": level.level, "last_modified": level.last_modified_ms}
