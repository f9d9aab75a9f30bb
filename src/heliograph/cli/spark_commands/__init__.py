"""Commands that prepare a Spark cluster for Heliograph. No command imports another."""
