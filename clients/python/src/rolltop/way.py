"""How items get to one place: chosen once, and shared by all objects that stand for it."""

from __future__ import annotations

import ssl
import time
from collections.abc import Mapping
from typing import Any, Generic, TypedDict, TypeVar

import httpx2

from .calls import Call
from .delivery import Delivery, Reports
from .errors import RolltopError
from .numbers import parse, print_json
from .pauses import pause
from .queue import Batching

S = TypeVar("S")
T = TypeVar("T")
# The longest pause that a caller is made to wait. Beyond it the error is raised, with the pause in it.
PATIENCE = 10.0


class Way(Generic[S]):
    def __init__(self, path: str, name: str) -> None:
        self.path, self.name = path, name
        self.batching: Batching | None = None
        self.reports: Reports | None = None
        self.delivery = Delivery(path, name, Reports())
        self.sender: S | None = None

    def choose(self, batching: Batching | None, reports: Reports | None) -> None:
        """Sets what is given. Raises an error if something else was chosen before."""
        for chosen, given in ((self.batching, batching), (self.reports, reports)):
            if given is not None and chosen not in (None, given):
                raise ValueError(f"batching and reports of {self.path} were chosen before, and differ")
        if self.sender and (batching or self.batching, reports or self.reports) != (self.batching, self.reports):
            raise ValueError(f"items for {self.path} are being sent already: choose batching and reports before")
        self.batching, self.reports = batching or self.batching, reports or self.reports
        self.delivery.reports = self.reports or Reports()


class Connecting(TypedDict):
    """How a client connects."""

    base_url: httpx2.URL
    headers: dict[str, str]
    timeout: float
    limits: httpx2.Limits
    verify: ssl.SSLContext


def connecting(url: str, key: str | None, timeout: float) -> Connecting:
    """Raises `ValueError` for what no request could be sent with, so that nothing waits for one in the background."""
    base = httpx2.URL(url)
    if base.scheme not in ("http", "https") or not base.host:
        raise ValueError(f"{url!r} is not a URL such as http://127.0.0.1:8080")
    if key and not (key.isascii() and key.isprintable() and " " not in key):
        raise ValueError("the key has characters that no key has, such as a line feed at its end")
    headers = {"authorization": f"Bearer {key}"} if key else {}
    # Each live ranking takes a connection: no number of them may keep the items from being sent.
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=20)
    # Made once: it takes longer than all the rest of a fork.
    verify = httpx2.create_ssl_context()
    return {"base_url": base, "headers": headers, "timeout": timeout, "limits": limits, "verify": verify}


def printed(call: Call[Any], accept: str) -> tuple[bytes | None, dict[str, str]]:
    """Returns the body and the headers of a request."""
    if call.body is None:
        return None, {"accept": accept}
    body = call.body if isinstance(call.body, bytes) else print_json(call.body)
    return body, {"accept": accept, "content-type": "application/json"}


def answer(response: httpx2.Response, accept: str) -> httpx2.Response:
    """Returns an answer of the kind that was asked for, and raises all others."""
    if not response.is_success:
        raise RolltopError.of_answer(response)
    kind = response.headers.get("content-type", "").partition(";")[0].strip()
    if kind != accept and not (accept == "application/json" and response.status_code == 204):
        raise RolltopError.unexpected(response)
    return response


def parsed(response: httpx2.Response) -> Any:
    if response.status_code == 204:
        return None
    try:
        return parse(response.content)
    except ValueError as error:
        raise RolltopError.unexpected(response) from error


def stream_headers(last_id: str) -> Mapping[str, str]:
    return {"accept": "text/event-stream", **({"last-event-id": last_id} if last_id else {})}


# The service sends a comment every 15 seconds.
STREAM_TIMEOUT = httpx2.Timeout(10.0, read=40.0)


def next_pause(call: Call[Any], error: RolltopError, attempt: int, end: float) -> float:
    """Returns the seconds until a call is sent again. Raises its error if it is not, because that may do harm or does not
    help, or because its time is over."""
    left = end - time.monotonic()
    if not call.is_repeatable or not error.is_transient or left <= 0 or (error.retry_after or 0) > PATIENCE:
        raise error
    # The last attempt is at the end of the time.
    return min(pause(attempt, error.retry_after), left)
