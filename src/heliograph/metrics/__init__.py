"""The page of metrics, made of one `ProcessSnapshot`.

`own_metrics`, `kafka_metrics` and `jvm_metrics` are the table: a row for each name, with type, text and value, and its
subject (`own_subjects`, `kafka_subjects`), which has the labels and the series. `dialects` derives the names that
exporters make of Kafka's metrics, `families` has those of a page. `shown` limits the series of a large flow,
`label_values` makes any text safe, and `page` renders. Pure: imports only `status`.
"""
