"""Long runs under load; `make test` plays a minute of them, `make soak` ten."""
