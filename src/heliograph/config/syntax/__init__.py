"""Parsers that know no key: `.properties`, YAML with lines and paths, Java's regular expressions.

Pure; imports nothing else of Heliograph but errors and diagnostics. `java_regex` matches with RE2 or `regex` what
`java_translation` has translated for them; `character_sets` has Java's classes of characters.
"""
