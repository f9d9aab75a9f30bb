"""Rules about groups: offset syncs, translation, checkpoints, and moves between clusters. Pure.

`offset_syncs` collects runs in a task; `offset_map` translates by the syncs; `checkpoints` decides when a checkpoint is
due; `group_moves` decides whether an offset of a group may be written; `moved_offsets` remembers who wrote the one
before; `group_view` plans and reports for a whole flow. Imports `mirror/topics`; executors use only `offset_syncs`.
"""
