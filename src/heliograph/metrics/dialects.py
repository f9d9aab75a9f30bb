"""The names that metrics have."""

from enum import StrEnum


class Dialect(StrEnum):
    """The exporter whose names are used."""

    JMX_EXPORTER = "jmx-exporter"
    METRICS_REPORTER = "metrics-reporter"
    KIP_1280 = "kip-1280"
