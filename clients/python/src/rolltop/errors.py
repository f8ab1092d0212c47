"""The error of all calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx2

from .numbers import parse

# Beside all from 500 on, of which proxies have some of their own.
TRANSIENT = frozenset((200, 408, 425, 429))
# The service did nothing, and asks to send again.
TRANSIENT_CODES = frozenset(("incomplete_body", "connection_ended", "board_changed", "board_frozen"))


class RolltopError(Exception):
    """A call that failed: refused by the service, or not answered.

    `status` is None if there was no answer. `code` is stable: that of the problem, or `unreachable`, `timed_out` or
    `interrupted` if there was no answer, `unexpected_answer` if it was not one of this service, `abandoned` if the
    client ended before it. `detail` is for people. `request_id` is in the log of the service. `retry_after` is in
    seconds, if the service says when to try again. `problem` has all members of the answer, such as `field`.
    """

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        status: int | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
        problem: Mapping[str, Any] | None = None,
    ) -> None:
        # An exception is pickled with what is given here.
        super().__init__(code, detail)
        self.code = code
        self.detail = detail
        self.status = status
        self.request_id = request_id
        self.retry_after = retry_after
        self.problem: Mapping[str, Any] = problem or {}

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}" + (f" (request {self.request_id})" if self.request_id else "")

    @property
    def is_transient(self) -> bool:
        """Whether the same request may succeed later."""
        status = self.status
        return status is None or status >= 500 or status in TRANSIENT or self.code in TRANSIENT_CODES

    @property
    def is_unknown(self) -> bool:
        """Whether the request may have been carried out all the same."""
        if self.status is None:
            return self.code != "unreachable"
        if self.status == 503 and self.problem:
            return self.code == "store_timeout"
        # A proxy may answer 503 although the service has the request.
        return self.status >= 500 or self.status in (200, 408)

    @classmethod
    def of_answer(cls, response: httpx2.Response) -> RolltopError:
        """Returns the error of an answer whose body was read."""
        try:
            problem = parse(response.content)
        except ValueError:
            problem = None
        if not isinstance(problem, dict):
            # A proxy in between.
            problem = {}
        # A proxy may give a date, which is not worth the trouble.
        seconds = response.headers.get("retry-after", "")
        return cls(
            str(problem.get("code", f"http_{response.status_code}")),
            str(problem.get("detail", problem.get("title", response.reason_phrase))),
            status=response.status_code,
            request_id=response.headers.get("x-request-id"),
            retry_after=float(seconds) if seconds.isascii() and seconds.isdigit() else None,
            problem=problem,
        )

    @classmethod
    def unexpected(cls, response: httpx2.Response) -> RolltopError:
        """Returns the error of a success that is not an answer of the service: a page of a proxy."""
        kind = response.headers.get("content-type", "no type")
        detail = f"an answer of {kind} that is none of the API"
        return cls("unexpected_answer", detail, status=response.status_code)

    @classmethod
    def of_transport(cls, error: httpx2.HTTPError) -> RolltopError:
        """Returns the error of a request that was not answered."""
        if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
            url = error.request.url
            where = f"{url.scheme}://{url.netloc.decode()} does not respond"
            return cls("unreachable", f"{where}: {error}" if str(error) else where)
        if isinstance(error, httpx2.TimeoutException):
            return cls("timed_out", "no answer in time")
        return cls("interrupted", str(error) or type(error).__name__)
