"""A server that answers as a test says, also in ways in which the service does not."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from typing import Any

from service import BadNetwork


def answer(status: int, body: object, kind: str = "application/json", headers: str = "") -> bytes:
    """Returns the text of an answer whose body is text, or is printed as JSON."""
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = f"HTTP/1.1 {status} Status\r\ncontent-type: {kind}\r\ncontent-length: {len(text)}\r\n{headers}\r\n"
    return head.encode() + text


def receipt(accepted: int, *rejected: dict[str, Any], **more: object) -> bytes:
    return answer(200, {"accepted": accepted, "duplicates": 0, "rejected": rejected, **more})


class Answers:
    """Calls a function for each request with the items in its body, and sends what that returns. An answer without a
    length ends the connection."""

    def __init__(self, reply: Callable[[list[Any]], bytes]) -> None:
        self._reply = reply
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        # The items of each request so far.
        self.requests: list[list[Any]] = []
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
            with client:
                while request := BadNetwork.message(client):
                    body = request.partition(b"\r\n\r\n")[2]
                    items = next(iter(json.loads(body).values())) if body else []
                    self.requests.append(items)
                    text = self._reply(items)
                    client.sendall(text)
                    if b"content-length" not in text:
                        return
        except OSError:
            pass
