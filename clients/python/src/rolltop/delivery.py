"""What is sent, and what becomes of it, without the waiting: both senders share this."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .calls import Call
from .errors import RolltopError
from .pauses import pause
from .queue import Batching

log = logging.getLogger("rolltop")

OnRejected = Callable[[Mapping[str, Any], str, str], None]
OnFailed = Callable[[list[Mapping[str, Any]], RolltopError], None]


@dataclass(slots=True)
class Reports:
    """What is told to whom.

    - `on_rejected(item, code, detail)`: an item that the service does not count, such as one that is too late.
    - `on_failed(items, error)`: items of a request that the service refuses as a whole, or that was given up.
    - `give_up_after`: seconds after which a batch is given up that meets nothing but errors. By default it is repeated
      for as long as the process lives.

    Without functions both are logged, and `flush` and `close` raise the first failure.
    """

    on_rejected: OnRejected | None = None
    on_failed: OnFailed | None = None
    give_up_after: float | None = None


@dataclass(slots=True)
class Delivery:
    """The way of the items of one queue."""

    path: str
    # The name of the list of items in a body.
    name: str
    reports: Reports
    counted: int = 0
    duplicates: int = 0
    rejected: int = 0
    failed: int = 0
    first_failure: RolltopError | None = field(default=None)

    def check(self, used: Batching, batching: Batching | None, reports: Reports | None) -> None:
        """Raises an error if other ways are asked for than those that are used already."""
        if batching not in (None, used) or reports not in (None, self.reports):
            raise ValueError(f"batching and reports of {self.path} were chosen before, and differ")

    def call(self, batch: list[dict[str, Any]]) -> Call[dict[str, Any]]:
        return Call("POST", self.path, body={self.name: batch})

    def next_pause(self, attempt: int, began: float, error: RolltopError) -> float | None:
        """Returns how long to wait before the batch is sent again, or None if it is given up."""
        if not error.is_transient:
            return None
        seconds = pause(attempt, error.retry_after)
        limit = self.reports.give_up_after
        if limit is not None and time.monotonic() + seconds - began > limit:
            return None
        # What a second attempt mends is no news.
        log.log(logging.WARNING if attempt == 2 else logging.DEBUG, "sending again in %.1f s: %s", seconds, error)
        return seconds

    def answered(self, batch: list[dict[str, Any]], answer: dict[str, Any]) -> None:
        self.counted += answer["accepted"]
        self.duplicates += answer["duplicates"]
        # Of an event each board that does not count it says so.
        for rejected in answer["rejected"]:
            self.rejected += 1
            item, code, detail = batch[rejected["index"]], rejected["code"], rejected["detail"]
            if self.reports.on_rejected:
                self._report(self.reports.on_rejected, item, code, detail)
            else:
                log.warning("not counted: %s: %s (%s)", code, detail, item)

    def gave_up(self, batch: list[dict[str, Any]], error: RolltopError) -> None:
        self.failed += len(batch)
        if self.reports.on_failed:
            self._report(self.reports.on_failed, batch, error)
        else:
            log.error("%d items were not sent: %s", len(batch), error)
            self.first_failure = self.first_failure or error

    def raise_failure(self) -> None:
        failure, self.first_failure = self.first_failure, None
        if failure:
            raise failure

    def _report(self, report: Callable[..., None], *what: object) -> None:
        try:
            report(*what)
        except Exception:
            # The items after it must be sent all the same.
            log.exception("a function that takes reports failed")
