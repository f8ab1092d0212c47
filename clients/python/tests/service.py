"""The service for tests, and what comes between it and a client."""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

PROGRAM = os.environ.get("ROLLTOP_TEST_PROGRAM", "rolltop")
CONFIGURATION = """
[boards.hot-posts]
metric = "COUNT(24h, like, post_id)"
slot = "1h"

[boards.device-logins]
metric = "COUNT(30m, login, device_id)"
slot = "1m"
ranked = false

[boards.prices]
metric = "SUM(24h, sale, amount, shop)"
slot = "1h"
decimals = 2

[boards.communities]
metric = "COUNT(24h, like, post_id BY community)"
slot = "1h"
"""


def free_port() -> int:
    """Returns a port that nothing uses, and that stays free while a service is killed: ports from 32,768 on are given
    to outgoing connections, also to those that try to reach the service."""
    while True:
        port = random.randrange(10_000, 32_768)
        with socket.socket() as attempt:
            attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                attempt.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


class Redis:
    """A Redis that keeps what it acknowledges."""

    def __init__(self, program: str) -> None:
        self.folder = tempfile.mkdtemp()
        self.port = free_port()
        arguments = [program, "--port", str(self.port), "--dir", self.folder, "--save", "", "--bind", "127.0.0.1"]
        self.process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL)
        for _ in range(500):
            with socket.socket() as attempt:
                if attempt.connect_ex(("127.0.0.1", self.port)) == 0:
                    break
            time.sleep(0.02)
        self.url = f"redis://127.0.0.1:{self.port}"

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder)


class Service:
    """A running service, which can be killed and started again."""

    def __init__(self, store: str = "embedded", configuration: str = CONFIGURATION) -> None:
        self.folder = Path(tempfile.mkdtemp())
        (self.folder / "rolltop.toml").write_text(configuration)
        self.port, self.store = free_port(), store
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        arguments = [PROGRAM, "serve", "--listen", f"127.0.0.1:{self.port}", "--store", self.store]
        arguments += ["--data-dir", str(self.folder / "data"), "--config", str(self.folder / "rolltop.toml")]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(arguments, stdout=log, stderr=log)
        for _ in range(1_200):
            try:
                with urllib.request.urlopen(f"{self.url}/readyz"):
                    return
            except OSError:
                time.sleep(0.05)
        raise RuntimeError((self.folder / "log").read_text()[-2000:])

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self.folder)


class BadNetwork:
    """Forwards connections to a port. Cuts some before a request arrives, some before its answer does, delays some, and
    sends some requests twice."""

    def __init__(self, port: int, seed: int) -> None:
        self._to, self._draw, self._lock = port, random.Random(seed), threading.Lock()
        # The kinds of faults of this round. Each kind is in each round, so a few faults have all of them.
        self._round: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.faults: dict[str, int] = {}
        self.is_bad = True
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            with client, socket.create_connection(("127.0.0.1", self._to)) as server:
                client.settimeout(60)
                while request := self.message(client):
                    fault = self._fault()
                    if fault == "before":
                        return
                    if fault == "delay":
                        time.sleep(0.2)
                    if fault == "twice":
                        with socket.create_connection(("127.0.0.1", self._to)) as other:
                            other.sendall(request)
                            self.message(other)
                    server.sendall(request)
                    answer = self.message(server)
                    if fault == "after" or not answer:
                        return
                    client.sendall(answer)
        except OSError:
            pass

    def _fault(self) -> str:
        with self._lock:
            kind = "none"
            if self.is_bad and self._draw.random() < 0.3:
                if not self._round:
                    self._round = self._draw.sample(["before", "after", "delay", "twice"], 4)
                kind = self._round.pop()
            self.faults[kind] = self.faults.get(kind, 0) + 1
            return kind

    @staticmethod
    def message(source: socket.socket) -> bytes:
        """Reads a request or an answer with a length. Returns nothing at the end of the connection."""
        text = b""
        while b"\r\n\r\n" not in text:
            more = source.recv(65536)
            if not more:
                return b""
            text += more
        head, _, body = text.partition(b"\r\n\r\n")
        lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        length = int(lengths[0].split(b":")[1]) if lengths else 0
        while len(body) < length:
            more = source.recv(65536)
            if not more:
                return b""
            body += more
        return head + b"\r\n\r\n" + body
