"""Commands that speak to a running process over REST: a worker of Connect or of Heliograph, or `heliograph run`.

Each module has one command or a family of them. No command imports another; what they share is in `cli/connect_client`.
"""
