"""Asks a worker's `/health` again and again, as a process of its own: the senders' threads must not delay the watch.

Prints a line for each call, the status and the seconds it took; ends when its standard input does.
"""

from __future__ import annotations

import http.client
import select
import sys
import time

_PAUSE_S = 0.1


def _status(connection: http.client.HTTPConnection) -> int:
    """The status; an idle connection may be closed for others, and another one is then as good."""
    for _attempt in range(2):
        try:
            connection.request("GET", "/health")
            response = connection.getresponse()
            response.read()
        except (ConnectionError, http.client.HTTPException):
            connection.close()
        else:
            return response.status
    raise ConnectionError("closed twice")


def main() -> None:
    """`python -m tests.fuzz.health PORT TIMEOUT_S`."""
    connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=float(sys.argv[2]))
    while not select.select([sys.stdin], [], [], _PAUSE_S)[0]:
        begin = time.monotonic()
        try:
            status: object = _status(connection)
        except OSError as error:
            connection.close()
            status = repr(error).replace(" ", "_")
        print(status, time.monotonic() - begin, flush=True)


if __name__ == "__main__":
    main()
