"""Documents that are not properties files, and conversion between all forms.

Pure; imports `effective`, `resolve`, `keys` and `syntax`. A reader (`strimzi_reader` with its neighbours,
`connector_json`) turns a document into a `Reading`: the entries of the dedicated-mode file that does the same, with a
place for each. `connector_parts` takes such entries apart by connector and cluster, `conversion` writes another form.
`connector_text` reads connectors as `validate` checks them: key by key, with lines.
"""
