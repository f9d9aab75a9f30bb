"""Produces batches to a cluster from an event loop. Runs in executors; `fenced_writer` also in a Connect worker.

May import kafka.net and what is below it, and wire. Callers use `producer`: `BatchProducer` decides which partitions
may send, `target_partition` owns their batches and states, `produce_lanes` knows connections and leaders,
`produce_requests` sends and delivers answers, `refused_batches` handles failed batches, `queue_memory` frees memory.
`producer_session` is the identity and the transactions of a producer. `large_batches` replaces batches that are too
large. `own_batches` sends our own records without a transaction, `fenced_writer` in transactions of a claimed id.
"""
