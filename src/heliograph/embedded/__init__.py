"""Real Apache Kafka on this machine, for the demo, the tests and the benchmark; and the Java that runs it."""
