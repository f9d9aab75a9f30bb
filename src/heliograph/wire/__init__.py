"""Bytes: record batches, the produce request, MM2's and Connect's records. Pure functions over buffers, no I/O."""
