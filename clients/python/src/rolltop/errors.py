"""The error of all calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx2

from .numbers import parse


class RolltopError(Exception):
    """A call that failed: refused by the service, or not answered.

    `status` is None if there was no answer. `code` is stable: that of the problem, or `unreachable`, `timed_out` or
    `interrupted` if there was no answer. `retry_after` is in seconds, if the service says when to try again.
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
        super().__init__(f"{code}: {detail}" + (f" (request {request_id})" if request_id else ""))
        self.code = code
        self.detail = detail
        self.status = status
        self.request_id = request_id
        self.retry_after = retry_after
        self.problem: Mapping[str, Any] = problem or {}

    @property
    def is_transient(self) -> bool:
        """Whether the same request may succeed later."""
        return self.status is None or self.status in (408, 425, 429, 500, 502, 503, 504)

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
        seconds = response.headers.get("retry-after", "")
        return cls(
            str(problem.get("code", f"http_{response.status_code}")),
            str(problem.get("detail", problem.get("title", response.reason_phrase))),
            status=response.status_code,
            request_id=response.headers.get("x-request-id"),
            retry_after=float(seconds) if seconds.isdigit() else None,
            problem=problem,
        )

    @classmethod
    def of_transport(cls, error: httpx2.HTTPError) -> RolltopError:
        """Returns the error of a request that was not answered."""
        if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
            return cls("unreachable", str(error) or "the service cannot be reached")
        if isinstance(error, httpx2.TimeoutException):
            return cls("timed_out", "no answer in time")
        return cls("interrupted", str(error) or type(error).__name__)
