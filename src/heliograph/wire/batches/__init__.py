"""Record batches: checked, rewritten if needed, forwarded; the hot path of executors.

Pure. `forward` turns a fetched range into batches to produce: `scan` walks it, `rewrite` writes records anew, `codecs`
compress, `batch_header` stamps our producer. Kernels (`scan`, `rewrite`, `fingerprint`, built on `kernel_bytes`) are
compiled by numba. `leader_epochs` recognises truncated logs, `fingerprint` compares logs, `log_records` decodes records
of small topics. May import `wire/messages`.
"""
