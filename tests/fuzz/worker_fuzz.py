"""A running worker under random and hostile requests: what it answers, and whether it stays well.

Four threads send requests for as long as asked, by http.client or as bytes on sockets; others hold silent sockets and
slow bodies. Beside them another process asks `/health`. A violation is a slow or wrong `/health`, an answer that admits
an unforeseen error, a worker that ends, or memory that does not come back.
"""

from __future__ import annotations

import http.client
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from random import Random
from urllib.parse import quote

import psutil

from tests.fuzz.requests import Clusters, Sent, draw
from tests.support.connect.connect_worker import RunningWorker

_SENDERS = 4
_ANSWER_S = 100.0
_HEALTH_S = 40.0  # shorter, so that a report of a worker that hangs names the requests it has
_SOCKETS = 300
_HOLD_S = 2.0
_RAW = (
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(600),
    b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 20_000,
    b"GET /" + b"x" * 200_000 + b" HTTP/1.1\r\n\r\n",
    b"POST /connectors HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFF\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
    b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" * 300,
    b"PUT /connectors/fuzz-a/config HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\n \r\n" * 50_000,
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET http://evil.example/connectors HTTP/1.1\r\nHost: localhost\r\n\r\n",
)
_SLOW = (
    b"PUT /connectors/fuzz-a/config HTTP/1.1\r\nHost: localhost\r\n"
    b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n{"
)


class WorkerFuzz:
    """One run against one worker; `ports` are those of its listeners, the first without TLS."""

    def __init__(
        self, worker: RunningWorker, ports: tuple[int, ...], clusters: Clusters, seed: int, health_limit_s: float
    ) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self.violations: list[str] = []
        self.worst_health_s = 0.0
        self.health_calls = 0
        self.memory: tuple[int, int, int] = (0, 0, 0)
        self._worker, self._ports, self._clusters = worker, ports, clusters
        self._seed, self._health_limit_s = seed, health_limit_s
        self._process = psutil.Process(worker.process.pid)
        self._lock = threading.Lock()
        self._under_way: dict[int, str] = {}
        self._stopping = threading.Event()

    def play(self, seconds: float, memory_margin_bytes: int, memory_patience_s: float) -> None:
        """Send for so many seconds, then let the worker come to rest."""
        health = threading.Thread(target=self._watch_health)
        health.start()
        # Modules, pools and thread stacks that first requests bring stay; they are no leak.
        self._send_until(time.monotonic() + min(30.0, seconds / 4), "warm-up")
        self._clear()
        begin = most = self._rss()
        end = time.monotonic() + seconds
        rounds = 0
        while time.monotonic() < end and self._is_well():
            self._send_until(min(end, time.monotonic() + 10.0), f"round {(rounds := rounds + 1)}")
            most = max(most, self._rss())
        self._clear()
        deadline = time.monotonic() + memory_patience_s
        while self._is_well() and self._rss() > begin + memory_margin_bytes and time.monotonic() < deadline:
            time.sleep(1.0)
        self._stopping.set()
        health.join()
        if self._worker.process.poll() is None:
            self.memory = (begin, most, self._rss())
            if self.memory[2] > begin + memory_margin_bytes:
                self._violated(f"memory did not come back: {_shown(self.memory)}")
        else:
            self._violated(f"the worker ended: {self._worker.output()[-3000:]}")

    def report(self) -> str:
        """Counts by route and status, the worst `/health`, memory, and what was violated."""
        by_route: dict[str, list[str]] = {}
        for (label, status), count in sorted(self.counts.items()):
            by_route.setdefault(label, []).append(f"{status}: {count}")
        lines = [f"{label:65} {', '.join(found)}" for label, found in by_route.items()]
        lines.append(f"{sum(self.counts.values()):,} requests, seed {self._seed}")
        lines.append(f"/health: {self.health_calls:,} calls, the slowest took {self.worst_health_s:.3f} s")
        lines.append(f"memory of the worker: {_shown(self.memory)}")
        return "\n".join([*lines, *(f"VIOLATED (seed {self._seed}): {each}" for each in self.violations)])

    def _is_well(self) -> bool:
        return not self.violations and self._worker.process.poll() is None

    def _violated(self, what: str) -> None:
        with self._lock:
            self.violations.append(what)

    def _rss(self) -> int:
        with suppress(psutil.NoSuchProcess):
            return int(self._process.memory_info().rss)
        return 0

    # --- health -----------------------------------------------------------------------------------
    def _watch_health(self) -> None:
        """Judge each call of the watching process; it ends with this method, and says so by the end of its output."""
        command = [sys.executable, "-m", "tests.fuzz.health", str(self._ports[0]), str(_HEALTH_S)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as watch:
            assert watch.stdin is not None
            assert watch.stdout is not None
            for line in watch.stdout:
                if self._stopping.is_set() or self._worker.process.poll() is not None:
                    break
                status, took = line.split()
                self.health_calls += 1
                self.worst_health_s = max(self.worst_health_s, float(took))
                if status != "200" or float(took) > self._health_limit_s:
                    under_way = self._all_under_way()
                    self._violated(f"/health answered {status} after {float(took):.2f} s while under way: {under_way}")
            watch.stdin.close()

    def _all_under_way(self) -> str:
        with self._lock:
            return "; ".join(self._under_way.values())

    # --- sending ----------------------------------------------------------------------------------
    def _send_until(self, deadline: float, word: str) -> None:
        randoms = [Random(f"{self._seed} {word} {number}") for number in range(_SENDERS)]
        threads = [threading.Thread(target=self._send, args=(random, deadline)) for random in randoms]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _send(self, random: Random, deadline: float) -> None:
        acts: list[Callable[[Random], None]] = [self._raw, self._silent, self._slow]
        while time.monotonic() < deadline and self._is_well():
            if random.random() < 0.95:
                self._ask(draw(random, self._clusters))
            else:
                random.choice(acts)(random)

    def _ask(self, sent: Sent) -> None:
        with self._named(str(sent)):
            connection = self._connection(_ANSWER_S)
            try:
                connection.putrequest(sent.method, sent.target, skip_host=any(n == "Host" for n, _v in sent.headers))
                for name, value in sent.headers:
                    connection.putheader(name, value)
                if not any(name in ("Content-Length", "Transfer-Encoding") for name, _value in sent.headers):
                    connection.putheader("Content-Length", str(len(sent.body)))
                connection.endheaders()
                # A body that is refused unread is cut off; the answer may be there nevertheless.
                with suppress(ConnectionError):
                    connection.sock.sendall(sent.body)
                connection.sock.settimeout(5.0 if sent.headers[1:] else _ANSWER_S)
                response = connection.getresponse()
                answer, status = response.read(), str(response.status)
                if b"Unexpected error" in answer:
                    self._violated(f"{answer.decode()} for {sent}")
            except TimeoutError:
                status = "no answer"
                if not sent.headers[1:]:
                    self._violated(f"no answer within {_ANSWER_S} s to {sent}")
            except (OSError, http.client.HTTPException, ValueError) as error:
                status = type(error).__name__
            finally:
                connection.close()
        self._count(sent.label, status)

    def _raw(self, random: Random) -> None:
        """Bytes that are no HTTP, or too much of it, or no TLS."""
        blob = random.choice((*_RAW, random.randbytes(2_000)))
        with self._named(f"raw bytes {blob[:80]!r}"), suppress(OSError), self._socket(random) as client:
            client.sendall(blob)
            client.settimeout(1.0)
            while client.recv(65_536):
                pass
        self._count("raw bytes", "sent")

    def _silent(self, random: Random) -> None:
        """Many sockets that say nothing."""
        opened: list[socket.socket] = []
        with self._named(f"{_SOCKETS} silent sockets"):
            for _client in range(_SOCKETS):
                with suppress(OSError):
                    opened.append(self._socket(random))
            self._stopping.wait(random.random() * _HOLD_S)
            for client in opened:
                client.close()
        self._count("silent sockets", str(_SOCKETS))

    def _slow(self, random: Random) -> None:
        """Bodies that come byte by byte."""
        with self._named("slow bodies"):
            opened: list[socket.socket] = []
            for _client in range(20):
                with suppress(OSError):
                    client = socket.create_connection(("127.0.0.1", self._ports[0]), 5)
                    opened.append(client)
                    client.sendall(_SLOW % random.choice((100, 100_000, 2_000_000)))
            end = time.monotonic() + random.random() * _HOLD_S
            while time.monotonic() < end:
                for client in opened:
                    with suppress(OSError):
                        client.sendall(b" ")
                time.sleep(0.1)
            for client in opened:
                client.close()
        self._count("slow bodies", "20")

    def _clear(self) -> None:
        """Delete every connector."""
        with suppress(OSError, http.client.HTTPException):
            _code, names = self._worker.ask("GET", "/connectors")
            for name in names if isinstance(names, list) else ():
                self._worker.ask("DELETE", f"/connectors/{quote(name, safe='')}")

    def _socket(self, random: Random) -> socket.socket:
        return socket.create_connection(("127.0.0.1", random.choice(self._ports)), 5)

    def _connection(self, timeout_s: float) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self._ports[0], timeout=timeout_s)

    def _count(self, label: str, status: str) -> None:
        with self._lock:
            self.counts[label, status] += 1

    def _named(self, what: str) -> _UnderWay:
        return _UnderWay(self._under_way, self._lock, what)


class _UnderWay:
    """What a thread does, while it does it."""

    def __init__(self, all_of_them: dict[int, str], lock: threading.Lock, what: str) -> None:
        self._all, self._lock, self._what = all_of_them, lock, what

    def __enter__(self) -> None:
        with self._lock:
            self._all[threading.get_ident()] = self._what

    def __exit__(self, *_exc: object) -> None:
        with self._lock:
            del self._all[threading.get_ident()]


def _shown(memory: tuple[int, int, int]) -> str:
    begin, most, end = (count >> 20 for count in memory)
    return f"{begin} MiB before, at most {most} MiB, {end} MiB after"
