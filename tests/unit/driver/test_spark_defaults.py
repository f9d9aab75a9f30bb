"""Settings of Spark: the user's before what replication relies on, before the site's, before our defaults."""

from __future__ import annotations

from pathlib import Path

import pytest

from heliograph.driver.spark.spark_defaults import our_settings, packed_python, site_settings

MIB = 1 << 20


def test_the_sites_file_is_read_where_spark_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "conf").mkdir()
    text = "# ours\nspark.ui.enabled   false\nspark.driver.extraJavaOptions=-Da=b -Dc=d \nspark.x:y\n"
    (tmp_path / "conf" / "spark-defaults.conf").write_text(text)
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    found = {"spark.ui.enabled": "false", "spark.driver.extraJavaOptions": "-Da=b -Dc=d", "spark.x": "y"}
    assert site_settings(tmp_path) == found
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "conf"))
    assert site_settings(Path("/nowhere")) == found
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert site_settings(tmp_path) == {}


def test_a_setting_of_the_site_or_the_user_is_not_overridden() -> None:
    site = {"spark.driver.memory": "4g", "spark.ui.enabled": "false", "spark.executor.maxNumFailures": "7"}
    ours = our_settings("spark://m:7077", site, {"spark.app.name": "copy"}, 64 * MIB)
    assert not {*site, "spark.app.name"} & set(ours)
    assert not any("extraJavaOptions" in name for name in ours)


def test_what_replication_relies_on_yields_only_to_the_user() -> None:
    unsafe = {"spark.speculation": "true", "spark.task.maxFailures": "4"}
    assert our_settings("yarn", unsafe, {}, MIB)["spark.speculation"] == "false"
    assert our_settings("yarn", unsafe, {}, MIB)["spark.task.maxFailures"] == "1"
    assert "spark.speculation" not in our_settings("yarn", {}, unsafe, MIB)


def test_a_cluster_has_the_ui_without_its_button_and_forgets_old_failures() -> None:
    ours = our_settings("spark://m:7077", {}, {}, 64 * MIB)
    assert (ours["spark.ui.enabled"], ours["spark.ui.killEnabled"]) == ("true", "false")
    assert ours["spark.executor.failuresValidityInterval"] == "10m"
    assert ours["spark.decommission.enabled"] == "true"
    assert "spark.network.timeout" in ours, "or a machine that is cut off gets its tasks back for two minutes"
    assert "spark.network.timeout" not in our_settings("yarn", {"spark.executor.heartbeatInterval": "1m"}, {}, MIB)
    local = our_settings("local[4]", {}, {}, 64 * MIB)
    assert local["spark.ui.enabled"] == "false"
    assert "spark.decommission.enabled" not in local


@pytest.mark.parametrize(
    ("cores", "cpus", "buffer_bytes", "overhead"),
    [("4", "1", 64 * MIB, "1152m"), ("4", "2", 64 * MIB, "768m"), ("1", "1", 256 * MIB + 1, "769m")],
)
def test_the_memory_of_python_workers_follows_from_cores_and_buffers(
    cores: str, cpus: str, buffer_bytes: int, overhead: str
) -> None:
    user = {"spark.executor.cores": cores, "spark.task.cpus": cpus}
    for master in ("yarn", "k8s://https://host:443"):
        assert our_settings(master, {}, user, buffer_bytes)["spark.executor.memoryOverhead"] == overhead
    for own in ({"spark.executor.memoryOverhead": "9g"}, {"spark.executor.memoryOverheadFactor": "0.5"}):
        assert "spark.executor.memoryOverhead" not in our_settings("yarn", own, user, buffer_bytes)
    assert "spark.executor.memoryOverhead" not in our_settings("spark://m:1", {}, user, buffer_bytes)


@pytest.mark.parametrize(
    ("archives", "python"),
    [
        ("", None),
        ("hdfs:///data.zip#data", None),
        ("/a/packed.tar.gz#environment", "./environment/bin/python"),
        ("x.zip,/a/heliograph-environment.tar.gz", "./heliograph-environment.tar.gz/bin/python"),
    ],
)
def test_the_python_of_a_packed_environment_is_found(archives: str, python: str | None) -> None:
    assert packed_python(archives) == python
