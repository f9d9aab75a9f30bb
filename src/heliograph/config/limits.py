"""The most that is taken of what comes from outside: configs through REST, names from a foreign cluster.

Connect has no such limits. These are far above what people write, and a config must fit into one record of the config
topic anyway; but every text is looked through several times, and nobody should be able to make that take long.
"""

from __future__ import annotations

LONGEST_CONFIG_NAME = 1_000  # characters; of connectors too
LONGEST_CONFIG_VALUE = 1 << 20
MOST_CONFIG_KEYS = 5_000
LONGEST_TOPIC_NAME = 249  # Kafka's own
# Kafka has no rule for the names of groups but what a string of its protocol holds, which are 32,767 bytes.
LONGEST_GROUP_NAME = 1_024
