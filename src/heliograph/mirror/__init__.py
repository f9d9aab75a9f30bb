"""MirrorMaker 2's rules: what is replicated, under which names, and how offsets are translated.

Pure: no I/O, no clock, no threads. The driver, executors, commands and clients all ask these functions. Imports only
`config`, `model` and `errors`. Of its packages `policy` is the lowest; `topics` uses it; `groups` and `acls`
use both.
"""
