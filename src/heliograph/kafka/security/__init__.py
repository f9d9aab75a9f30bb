"""TLS and SASL: from the keys of a configuration to an authenticated connection.

`security_settings` turns keys into the values of `connection_spec`, which travel to executors; the driver does this at
load time. `tls` (with `keystores` and `jks`) and `sasl` (with `oauth`) use the values when a socket opens, in any
process. Knows no connection: `kafka/net` does. May import `config` and the modules directly in `kafka`.
"""
