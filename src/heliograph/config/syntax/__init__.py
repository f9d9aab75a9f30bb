"""Parsers that know no key: `.properties`, YAML with lines and paths, Java's regular expressions.

Pure; imports nothing else of Heliograph but errors and diagnostics. `java_regex` compiles a pattern that
`java_translation` has translated for Python's `regex`; `character_sets` has Java's classes of characters.
"""
