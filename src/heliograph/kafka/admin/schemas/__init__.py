"""Messages of Kafka's protocol that kafka-python does not have, in the format of Kafka's own message files.

A file has the name of its message; `share_groups` makes classes of them. A test compares each with Kafka's.
"""

from __future__ import annotations
