"""From the entries of a file to the value of a key, and back to the user's names for messages.

Pure; imports `keys`, `secrets` and `syntax`. `overlays` decides which of several places wins, `placeholders` resolves
`${...}` when a value is needed, `settings` is the typed view of the result, `connector_limits` what a connector may
name, `jaas` the syntax of logins. `redaction` hides secrets, `key_places` adds lines and the user's names to
diagnostics, `suggestions` has the message about an unknown key.
"""
