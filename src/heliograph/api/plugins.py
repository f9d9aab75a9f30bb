"""`/connector-plugins`: the connectors there are, their keys, and validation.

Only connectors are listed, also with `connectorsOnly=false`: batches are copied as they are, so there is nothing for a
converter, a transformation or a predicate to do, and none is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.api import bodies
from heliograph.api.errors import NO_SUCH_VERSION, OTHER_TYPE, UNKNOWN_PLUGIN
from heliograph.api.exchange import Answer, json_answer
from heliograph.errors import ConnectError
from heliograph.worker.connect_errors import no_class, unknown_class
from heliograph.worker.connect_types import CONNECT_VERSION

if TYPE_CHECKING:
    from heliograph.api.exchange import Call

_LATEST = "latest"
_SUFFIX = "Connector"


def list_plugins(call: Call) -> Answer:
    """The three connectors of MirrorMaker 2."""
    return json_answer(
        [
            {"class": name, "type": "source", "version": CONNECT_VERSION}
            for name in sorted(call.worker.plugins.connector_classes())
        ]
    )


def get_definitions(call: Call) -> Answer:
    """The keys a connector has."""
    plugin = call.worker.plugins.resolve(call.path["plugin"])
    if plugin is None:
        raise UNKNOWN_PLUGIN.error(name=call.path["plugin"])
    version = call.query.get("version", [_LATEST])[0]
    if version not in (_LATEST, CONNECT_VERSION):
        raise NO_SUCH_VERSION.error(name=plugin, version=version, available=CONNECT_VERSION)
    return json_answer(call.worker.plugins.definitions(plugin))


def validate(call: Call) -> Answer:
    """What each key of a config means and what is wrong with it; 200 also where something is."""
    config = bodies.config_map(call.body)
    name, included = call.path["plugin"], config.get("connector.class")
    if included is None:
        raise _as_server_error(no_class(config))
    if not _without_suffix(included).endswith(_without_suffix(name)):
        raise OTHER_TYPE.error(included=included, requested=name)
    plugin = call.worker.plugins.resolve(included)
    if plugin is None:
        raise _as_server_error(unknown_class(included, call.worker.plugins.connector_classes()))
    return json_answer({**call.worker.plugins.validate(plugin, config), "name": included})


def _without_suffix(class_name: str) -> str:
    """Connect compares the class of the path with the end of the class in the body, both without this suffix."""
    return class_name.removesuffix(_SUFFIX) or class_name


def _as_server_error(error: ConnectError) -> ConnectError:
    """Here Connect tells with 500 what it otherwise tells with 400."""
    return ConnectError(500, error.message)
