"""Text to typed settings. Pure: no socket, clock, thread or log; a `Lookup` brings in variables and files.

A configuration is a dedicated-mode properties file, a `KafkaMirrorMaker2` resource, connectors' JSON, or the file of a
Connect worker. Each package may import those before it:

    syntax      parsers that know no key: properties, YAML, Java's regular expressions
    secrets     values that no message may show, and the syntax of placeholders
    keys        the table: one row per key
    resolve     which value wins, placeholders, redaction, places and suggestions for messages
    effective   a file, a connector, a worker and REST access as typed objects
    formats     documents that are not properties files, and conversion between forms
    validate    everything that is wrong with a file, a worker or a connector

Findings are diagnostics (`heliograph.diagnostics`); the command line, REST and the log render them.
"""
