"""The benchmark: Java MirrorMaker 2 and Heliograph in one run, on the same clusters and the same data."""
