"""Real Java beside us: Kafka's own MirrorMaker 2 classes and program, and what each side makes of the other's records."""
