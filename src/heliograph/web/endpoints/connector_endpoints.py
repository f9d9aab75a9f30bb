"""Handlers of `/connectors`: configs, states, tasks, restarts, topics and source offsets (KIP-875)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from heliograph.config.resolve.redaction import public_text
from heliograph.config.secrets.known_secrets import hide_known
from heliograph.config.validate.connector_validation import NULL_VALUE
from heliograph.connect.contract.refusals import NAME_MISMATCH, NO_TASK_STATUS, invalid
from heliograph.errors import ConnectError
from heliograph.web.endpoints import request_bodies
from heliograph.web.error_responses import NO_SUCH_PATH
from heliograph.web.exchange import RestResponse, json_answer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from heliograph.connect.contract.herder import ConnectorInfo, ConnectorStatus, TaskStatus
    from heliograph.web.exchange import Call
    from heliograph.wire.records.connect_configs import TargetState


_LARGEST_TASK = 2**31 - 1


def list_connectors(call: Call) -> RestResponse:
    """Return the names, or with `expand` an object with info and status of each."""
    names = call.herder.connectors()
    expand = call.query.get("expand")
    if expand is None:
        return json_answer(names)
    return json_answer({name: _expanded(call, name, expand) for name in names})


def _expanded(call: Call, name: str, expand: Sequence[str]) -> dict[str, object]:
    """Return the requested parts; a connector that was just deleted, or has no status yet, lacks them."""
    parts: dict[str, object] = {}
    try:
        if "info" in expand:
            parts["info"] = _info(call.herder.info(name))
        if "status" in expand:
            parts["status"] = _status(call, call.herder.status(name))
    except ConnectError as error:
        if error.status != 404:
            raise
    return parts


def create(call: Call) -> RestResponse:
    """Create a connector, in the requested state."""
    request = request_bodies.create_request(call.body)
    config = _checked_config(request.name, request.config)
    info = call.herder.create(request.name, config, request.initial_state)
    return json_answer(_info(info), 201, _location(info.name))


def get(call: Call) -> RestResponse:
    """Return config and tasks."""
    return json_answer(_info(call.herder.info(call.path["connector"])))


def get_config(call: Call) -> RestResponse:
    """Return the config alone."""
    return json_answer(dict(call.herder.info(call.path["connector"]).config))


def put_config(call: Call) -> RestResponse:
    """Replace the config, or create the connector."""
    name = call.path["connector"]
    created, info = call.herder.put_config(name, _checked_config(name, request_bodies.config_map(call.body)))
    return json_answer(_info(info), 201, _location(name)) if created else json_answer(_info(info))


def patch_config(call: Call) -> RestResponse:
    """Replace some keys; those with null are removed."""
    return json_answer(_info(call.herder.patch_config(call.path["connector"], request_bodies.config_map(call.body))))


def delete(call: Call) -> RestResponse:
    """Stop and delete the connector."""
    call.herder.delete(call.path["connector"])
    return RestResponse(204)


def get_status(call: Call) -> RestResponse:
    """Return the states of the connector and its tasks."""
    return json_answer(_status(call, call.herder.status(call.path["connector"])))


def pause(call: Call) -> RestResponse:
    """Pause: tasks stay, and do nothing."""
    return _to_state(call, "PAUSED", 202)


def resume(call: Call) -> RestResponse:
    """Resume, from paused or stopped."""
    return _to_state(call, "STARTED", 202)


def stop(call: Call) -> RestResponse:
    """Stop: the tasks are removed, the config stays."""
    return _to_state(call, "STOPPED", 204)


def restart(call: Call) -> RestResponse:
    """Restart the connector; with a flag also tasks, and then return the status."""
    name = call.path["connector"]
    include_tasks, only_failed = call.flag("includeTasks"), call.flag("onlyFailed")
    status = call.herder.restart(name, include_tasks=include_tasks, only_failed=only_failed)
    return json_answer(_status(call, status), 202) if include_tasks or only_failed else RestResponse(204)


def list_tasks(call: Call) -> RestResponse:
    """Return the config of each task."""
    name = call.path["connector"]
    configs = call.herder.task_configs(name)
    return json_answer([{"id": _task_id(name, task), "config": config} for task, config in enumerate(configs)])


def get_task_status(call: Call) -> RestResponse:
    """Return the state of one task."""
    name, number = call.path["connector"], _task_number(call)
    try:
        tasks = call.herder.status(name).tasks
    except ConnectError as error:
        if error.status != 404:
            raise
        tasks = ()
    for task in tasks:
        if task.id == number:
            return json_answer(_task_status(call, name, task))
    raise NO_TASK_STATUS.error(name=name, task=number)


def restart_task(call: Call) -> RestResponse:
    """Restart one task."""
    call.herder.restart_task(call.path["connector"], _task_number(call))
    return RestResponse(204)


def get_topics(call: Call) -> RestResponse:
    """Return the topics that the connector has written to."""
    name = call.path["connector"]
    return json_answer({name: {"topics": call.herder.topics(name)}})


def reset_topics(call: Call) -> RestResponse:
    """Reset the topics that the connector has written to."""
    call.herder.reset_topics(call.path["connector"])
    return RestResponse(202)


def get_offsets(call: Call) -> RestResponse:
    """Return the committed source offsets."""
    found = call.herder.offsets(call.path["connector"])
    return json_answer({"offsets": [{"partition": partition, "offset": offset} for partition, offset in found]})


def alter_offsets(call: Call) -> RestResponse:
    """Alter the source offsets of some partitions."""
    call.herder.alter_offsets(call.path["connector"], request_bodies.offsets(call.body))
    return json_answer({"message": "The offsets for this connector have been altered successfully"})


def reset_offsets(call: Call) -> RestResponse:
    """Reset all source offsets."""
    call.herder.alter_offsets(call.path["connector"], None)
    return json_answer({"message": "The offsets for this connector have been reset successfully"})


def _to_state(call: Call, state: TargetState, status: int) -> RestResponse:
    call.herder.set_target_state(call.path["connector"], state)
    return RestResponse(status)


def _task_number(call: Call) -> int:
    text = call.path["task"]
    if not re.fullmatch("[0-9]+", text) or int(text) > _LARGEST_TASK:
        raise NO_SUCH_PATH.error()
    return int(text)


def _checked_config(name: str, config: Mapping[str, str | None]) -> dict[str, str]:
    """Return the config with the connector's name in it; refuse one with another name or with a null value."""
    config_name = config.get("name", name)
    if config_name != name:
        raise NAME_MISMATCH.error(config_name=config_name, name=name)
    checked = {key: value for key, value in config.items() if value is not None}
    if len(checked) < len(config):
        raise invalid([NULL_VALUE] * (len(config) - len(checked)))
    return {**checked, "name": name}


def _location(name: str) -> str:
    return f"/connectors/{quote(name)}"


# --- shapes ---------------------------------------------------------------------------------------
def _info(info: ConnectorInfo) -> dict[str, Any]:
    tasks = [_task_id(info.name, task) for task in info.tasks]
    return {"name": info.name, "config": dict(info.config), "tasks": tasks, "type": info.type}


def _task_id(name: str, task: int) -> dict[str, Any]:
    return {"connector": name, "task": task}


def _status(call: Call, status: ConnectorStatus) -> dict[str, Any]:
    tasks = [_task_status(call, status.name, task) for task in status.tasks]
    return {"name": status.name, "connector": _state(call, status.name, status), "tasks": tasks, "type": status.type}


def _task_status(call: Call, name: str, task: TaskStatus) -> dict[str, Any]:
    return {"id": task.id, **_state(call, name, task)}


def _state(call: Call, name: str, status: ConnectorStatus | TaskStatus) -> dict[str, Any]:
    """Return a state, with its trace if there is one."""
    state = {"state": status.state, "worker_id": status.worker_id, "version": status.version}
    if not status.trace:
        return state
    return {**state, "trace": hide_known(status.trace, lambda: public_text(call.herder.info(name).config))}
