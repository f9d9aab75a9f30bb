"""Apache Kafka on this machine, for `heliograph kafka`, `heliograph demo` and the tests. No part of replication.

`kafka_cluster` starts and stops clusters of brokers, each a Java `process` on jars that `jars` downloads and verifies;
`layouts` knows the differences between versions of Kafka, `storage` formats the storage of KRaft nodes, `java` finds a
Java and the cache folder. `kafka_tools` runs Kafka's own command line tools. Imports only `errors`.
"""
