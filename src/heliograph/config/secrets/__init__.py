"""Secrets in text: values that no log or message may show (`known_secrets`), and the syntax of `${...}` placeholders.

Pure; imports nothing else of Heliograph, so that the table of keys and the log can use it.
"""
