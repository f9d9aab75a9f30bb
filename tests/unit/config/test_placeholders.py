"""Who may have which placeholder resolved, and what is said where it cannot be."""

from __future__ import annotations

import pytest

from heliograph.config import keys
from heliograph.config.resolve.placeholders import Resolver
from heliograph.config.resolve.settings import Settings, Unresolved
from heliograph.errors import ConfigError
from tests.support.diagnostics import texts

PROVIDER = "org.apache.kafka.common.config.provider."
FILES = {"/run/a.properties": "password=canary\n", "/run/d/token": "canary", "/etc/secret": "stolen"}
DECLARED = {
    "config.providers": "file,d,env",
    "config.providers.file.class": f"{PROVIDER}FileConfigProvider",
    "config.providers.file.param.allowed.paths": "/run",
    "config.providers.d.class": f"{PROVIDER}DirectoryConfigProvider",
    "config.providers.d.param.allowed.paths": "/run/d",
    "config.providers.env.class": f"{PROVIDER}EnvVarConfigProvider",
    "config.providers.env.param.allowlist.pattern": "LOB_.*",
}


class Machine:
    """Some variables and files."""

    def variable(self, name: str) -> str | None:
        return {"LOB_PW": "canary", "OTHER": "stolen"}.get(name)

    def read_text(self, path: str) -> str | None:
        return FILES.get(path.replace("/run/d/../../", "/"))


@pytest.mark.parametrize(
    "text", ["${env:LOB_PW}", "${LOB_PW}", "${file:/run/a.properties:password}", "${dir:/run/d:token}"]
)
def test_the_author_of_a_file_may_name_anything(text: str) -> None:
    assert Resolver(Machine(), {}).resolve("k", text) == "canary"


@pytest.mark.parametrize(
    "text", ["${env:LOB_PW}", "${LOB_PW}", "${file:/run/a.properties:password}", "${dir:/run/d:token}"]
)
def test_a_connector_may_not_where_its_worker_declares_nothing(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^k: .*add 'config.providers = (env|file|dir)'") as refused:
        Resolver(Machine(), {}).declared_only().resolve("k", text)
    assert "canary" not in str(refused.value)


@pytest.mark.parametrize(
    "text", ["${env:LOB_PW}", "${LOB_PW}", "${file:/run/a.properties:password}", "${d:/run/d:token}"]
)
def test_a_connector_may_use_what_is_declared(text: str) -> None:
    assert Resolver(Machine(), DECLARED).declared_only().resolve("k", text) == "canary"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("${env:OTHER}", "the environment variable OTHER is not set"),
        ("${OTHER}", "the environment variable OTHER is not set"),
        ("${file:/etc/secret:x}", "outside of the provider's allowed.paths"),
        ("${file:/run/../etc/secret:x}", "outside of the provider's allowed.paths"),
        ("${d:/run/d:../../etc/secret}", "is not the name of a file in the folder /run/d"),
        ("${d:/etc:secret}", "outside of the provider's allowed.paths"),
        ("${vault:a:b}", "config provider 'vault'"),
    ],
)
def test_what_is_not_allowed_is_not_read(text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as refused:
        Resolver(Machine(), DECLARED).declared_only().resolve("k", text)
    assert "stolen" not in str(refused.value)


@pytest.mark.parametrize("text", ["${env:LOB_PW}", "${LOB_PW}"])
def test_the_variables_a_connector_may_use_are_named_as_java_reads_them(text: str) -> None:
    pattern = {"config.providers.env.param.allowlist.pattern": "[A-Z_&&[^X]]++"}
    assert Resolver(Machine(), DECLARED | pattern).declared_only().resolve("k", text) == "canary"


def test_a_pattern_of_variables_that_is_none_is_one_sentence_of_its_key() -> None:
    resolver = Resolver(Machine(), DECLARED | {"config.providers.env.param.allowlist.pattern": "*_PW"})
    (problem,) = texts(resolver.problems)
    assert problem.startswith(
        "config.providers.env.param.allowlist.pattern: '*_PW' cannot be read as a Java regular expression: "
    )
    for each in (resolver, resolver.declared_only()):
        with pytest.raises(ConfigError) as refused:
            each.resolve("k", "${env:LOB_PW}")
        assert texts(refused.value.problems) == (problem,)


def test_a_patient_one_leaves_in_place_what_it_cannot_replace() -> None:
    resolver = Resolver(Machine(), {}, is_patient=True)
    assert resolver.looked_up("k", "${LOB_PW}") == "canary"
    assert not isinstance(resolver.looked_up("k", "${LOB_PW}"), Unresolved)
    value = resolver.looked_up("k", "user=${LOB_PW} password=${env:NOT_SET} x=${file:/no:x}")
    assert value == "user=canary password=${env:NOT_SET} x=${file:/no:x}"
    assert isinstance(value, Unresolved)
    with pytest.raises(ConfigError, match="k: the environment variable NOT_SET is not set"):
        Settings({keys.TOPICS.name: value})[keys.TOPICS]
    with pytest.raises(ConfigError):
        Resolver(Machine(), {}).looked_up("k", "${env:NOT_SET}")
    connectors = Resolver(Machine(), DECLARED, is_patient=True).declared_only()
    assert isinstance(connectors.looked_up("k", "${env:OTHER}"), Unresolved)


def test_who_may_use_declared_providers_only_may_not_more_by_looking_on() -> None:
    resolver = Resolver(Machine(), {}).declared_only().tolerant()
    assert resolver.resolve("k", "${env:OTHER}") == "${env:OTHER}"
