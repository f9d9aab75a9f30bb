"""Kafka's own Java classes in a JVM beside the tests, called through py4j: no Java is compiled, a JRE is enough.

PySpark ships py4j and its jar; `heliograph.embedded` knows Java and Kafka's jars. What is package-private or protected
in Java is reached by reflection (`call`, `new`, `field`). The JVM ends with `close`, at the latest with this process.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from typing import Any, Self

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from heliograph.embedded.jars import connect_jars, ensure_jars
from heliograph.embedded.java import java_command
from tests.interop.java_mm2 import LOG_CONFIG

MIRROR = "org.apache.kafka.connect.mirror"


class Java:
    """A JVM with Kafka Connect and MirrorMaker 2 on its class path."""

    def __init__(self, folder: Path) -> None:
        log_config = folder / "log4j2.properties"
        log_config.write_text(LOG_CONFIG)
        self.log = folder / "java.log"
        with self.log.open("ab") as log:
            port, token, self._process = launch_gateway(
                jarpath=str(_py4j_jar()),
                classpath=f"{ensure_jars(connect_jars())}/*",
                javaopts=["-Xmx256m", "-XX:TieredStopAtLevel=1", f"-Dlog4j2.configurationFile={log_config}"],
                java_path=java_command(),
                die_on_exit=True,
                enable_auth=True,
                return_proc=True,
                redirect_stderr=log,
            )
        parameters = GatewayParameters(port=port, auth_token=token, auto_convert=True)
        self._gateway = JavaGateway(gateway_parameters=parameters)
        self.jvm: Any = self._gateway.jvm
        kafka = self.jvm.org.apache.kafka  # each dot is a round trip: what is needed often is looked up once
        self._topic_partition = kafka.common.TopicPartition
        self._consumer_record = kafka.clients.consumer.ConsumerRecord

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End the JVM."""
        self._gateway.shutdown()
        self._process.stdin.close()
        try:
            self._process.wait(120)
        finally:
            self._process.kill()

    # --- public classes -----------------------------------------------------------------------------------------------

    def tp(self, topic: str, partition: int = 0) -> Any:
        """A `TopicPartition` of Java."""
        return self._topic_partition(topic, partition)

    def record(self, topic: str, key: bytes, value: bytes, headers: tuple[tuple[str, bytes], ...] = ()) -> Any:
        """A `ConsumerRecord` as a consumer of bytes would get it."""
        record = self._consumer_record(topic, 0, 3, key, value)
        for name, packed in headers:
            record.headers().add(name, packed)
        return record

    def main(self, name: str, *words: str) -> None:
        """Run a tool of Kafka's as its script does."""
        array = self._gateway.new_array(self.jvm.java.lang.String, len(words))
        for at, word in enumerate(words):
            array[at] = word
        self.call(name, "main", array)

    def seconds(self, seconds: int) -> Any:
        """A `Duration`."""
        return self.jvm.java.time.Duration.ofSeconds(seconds)

    # --- by reflection ------------------------------------------------------------------------------------------------

    def new(self, name: str, *arguments: object) -> Any:
        """An object of a class, by whichever constructor takes that many arguments."""
        found = [c for c in self._class(name).getDeclaredConstructors() if c.getParameterCount() == len(arguments)]
        assert len(found) == 1, f"{name} has {len(found)} constructors of {len(arguments)} arguments"
        found[0].setAccessible(True)
        return found[0].newInstance(self.array(arguments))

    def call(self, target: Any, method: str, *arguments: object) -> Any:
        """Call a method of an object, or a static one of a class given by its name, however hidden."""
        if isinstance(target, str):
            return self._method(target, method, len(arguments)).invoke(None, self.array(arguments))
        return self._method(_class_name(target), method, len(arguments)).invoke(target, self.array(arguments))

    def field(self, target: Any, name: str) -> Any:
        """The value of an object's field."""
        return self._field(_class_name(target), name).get(target)

    def set_field(self, target: Any, name: str, value: object) -> None:
        """Give an object's field a value."""
        self._field(_class_name(target), name).set(target, value)

    def caller(self, target: Any, method: str) -> Caller:
        """A method of one argument that is to be called very often."""
        return Caller(self._method(_class_name(target), method, 1), target, self.array((None,)))

    def _class(self, name: str) -> Any:
        return self.jvm.java.lang.Class.forName(name)

    def array(self, values: tuple[object, ...]) -> Any:
        """An `Object[]`."""
        array = self._gateway.new_array(self.jvm.java.lang.Object, len(values))
        for at, value in enumerate(values):
            array[at] = value
        return array

    @cache  # noqa: B019  (one JVM lives as long as the tests)
    def _method(self, class_name: str, name: str, argument_count: int) -> Any:
        for declaring in self._lineage(class_name):
            for method in declaring.getDeclaredMethods():
                if method.getName() == name and method.getParameterCount() == argument_count:
                    method.setAccessible(True)
                    return method
        raise AssertionError(f"{class_name} has no method {name} of {argument_count} arguments")

    @cache  # noqa: B019
    def _field(self, class_name: str, name: str) -> Any:
        for declaring in self._lineage(class_name):
            for field in declaring.getDeclaredFields():
                if field.getName() == name:
                    field.setAccessible(True)
                    return field
        raise AssertionError(f"{class_name} has no field {name}")

    def _lineage(self, class_name: str) -> list[Any]:
        lineage, at = [], self._class(class_name)
        while at is not None:
            lineage.append(at)
            at = at.getSuperclass()
        return lineage


class Caller:
    """A method of one argument, with its array of arguments at hand: fewer round trips."""

    def __init__(self, method: Any, target: Any, arguments: Any) -> None:
        self._method, self._target, self._arguments = method, target, arguments

    def __call__(self, argument: object) -> Any:
        self._arguments[0] = argument
        return self._method.invoke(self._target, self._arguments)


def _class_name(target: Any) -> str:
    return str(target.getClass().getName())


def _py4j_jar() -> Path:
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return next((Path(spec.origin).parent / "jars").glob("py4j-*.jar"))
