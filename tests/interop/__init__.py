"""Real Java beside us: Kafka's own MM2, its classes and its program, and what each side makes of the other's work."""
