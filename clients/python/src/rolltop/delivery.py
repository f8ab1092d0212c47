"""What is sent, and what becomes of it, without the waiting: both senders share this."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .calls import Call
from .errors import RolltopError
from .pauses import pause
from .queue import Waiting

log = logging.getLogger("rolltop")
# The seconds between two messages that a batch cannot be sent.
SAY_AGAIN = 60.0
# The most types of events of which it is said that no board counts them.
MOST_TYPES = 100

OnRejected = Callable[[Mapping[str, Any], str, str], None]
OnFailed = Callable[[Sequence[Mapping[str, Any]], RolltopError], None]


@dataclass(frozen=True, slots=True)
class Reports:
    """What is told to whom, and when sending ends. The functions are called by the sender: they must not wait for it.

    - `on_rejected(item, code, detail)`: an item that the service does not count, such as one that is too late. Without,
      this is logged.
    - `on_failed(items, error)`: items of a request that the service refuses as a whole, or that were given up. Without,
      this is logged, and `flush` and `close` raise the first one.
    - `on_attributes_rejected(item, code, detail)`: an item that was counted, and whose attributes were not set. Without,
      this is logged.
    - `give_up_after`: seconds for which a batch is sent again that certainly was not counted. By default for ever.
    - `unknown_for`: seconds for which a batch is sent again that may have been counted, because an answer was lost. It
      must be shorter than the board remembers ids (`ids.horizon` of its status), or the batch may count twice.
    """

    on_rejected: OnRejected | None = None
    on_failed: OnFailed | None = None
    give_up_after: float | None = None
    unknown_for: float = 1_200.0
    on_attributes_rejected: OnRejected | None = None


class Delivery:
    """What became of the items of a board, or of the events, in this process: the numbers of those `counted`, of
    `duplicates`, which were counted before, of those `rejected` (of an event, by each board), and of those that
    `failed`.
    """

    def __init__(self, path: str, name: str, reports: Reports) -> None:
        # `name`: of the list of items in a body.
        self.path, self.name, self.reports = path, name, reports
        # `unknown`: events of types that no board counts.
        self.counted, self.duplicates, self.rejected, self.failed, self.unknown = 0, 0, 0, 0, 0
        self._unknown_types: set[str] = set()
        self._first_failure: RolltopError | None = None

    def take_failure(self) -> RolltopError | None:
        """Returns the first error that no function was told, once."""
        failure, self._first_failure = self._first_failure, None
        return failure

    def count(self, answer: Mapping[str, Any], sent: list[Waiting]) -> list[Waiting]:
        """Takes an answer. Returns the items that must be sent again."""
        self.counted += answer["accepted"]
        self.duplicates += answer["duplicates"]
        for kind in set(answer.get("unknown_types", ())) - self._unknown_types:
            if len(self._unknown_types) < MOST_TYPES:
                self._unknown_types.add(kind)
                log.warning("no board counts events of the type %s", kind)
        self.unknown += answer.get("unknown", 0)
        again: dict[int, Waiting] = {}
        # Of an event each board that does not count it says so.
        for rejected in answer["rejected"]:
            index, code, detail = rejected["index"], rejected["code"], rejected["detail"]
            waiting = sent[index]
            if code == "memory_full":
                again[index] = waiting
                continue
            self.rejected += 1
            if self.reports.on_rejected:
                self._report(self.reports.on_rejected, waiting.item, code, detail)
            else:
                log.warning("not counted: %s: %s (%s)", code, detail, waiting.item)
        for refused in answer.get("attributes_rejected", ()):
            item, code, detail = sent[refused["index"]].item, refused["code"], refused["detail"]
            if self.reports.on_attributes_rejected:
                self._report(self.reports.on_attributes_rejected, item, code, detail)
            else:
                log.warning("attributes not set: %s: %s (%s)", code, detail, item)
        return list(again.values())

    def fail(self, left: list[Waiting], error: RolltopError, *, is_raised: bool = True) -> None:
        """Reports items that are not sent any more. `is_raised`: by `flush` and `close`, unless a function is told."""
        self.failed += len(left)
        if self.reports.on_failed:
            self._report(self.reports.on_failed, [waiting.item for waiting in left], error)
        else:
            log.error("%d items were not sent: %s", len(left), error)
            if is_raised:
                self._first_failure = self._first_failure or error

    def abandon(self, left: list[Waiting], *, is_raised: bool) -> None:
        """Reports what is given up because the client ends."""
        if left:
            error = RolltopError("abandoned", "the client ended before they were acknowledged")
            self.fail(left, error, is_raised=is_raised)

    def _report(self, report: Callable[..., None], *what: object) -> None:
        try:
            report(*what)
        except Exception:
            # The items after it must be sent all the same.
            log.exception("a function that takes reports failed")


class Sending:
    """A batch on its way."""

    def __init__(self, delivery: Delivery, batch: list[Waiting]) -> None:
        self._delivery, self._left, self._most = delivery, batch, len(batch)
        self._attempt, self._began, self._said = 0, time.monotonic(), time.monotonic()
        self._unknown_since: float | None = None

    def call(self) -> Call[dict[str, Any]]:
        texts = b",".join(waiting.text for waiting in self._left[: self._most])
        body = b'{"%s":[%s]}' % (self._delivery.name.encode(), texts)
        return Call("POST", self._delivery.path, body=body)

    def outcome(self, result: Any) -> float | None:
        """Takes the answer or the error of the call. Returns the seconds until the next one, or None after the last."""
        now = time.monotonic()
        if not isinstance(result, RolltopError):
            sent, rest = self._left[: self._most], self._left[self._most :]
            try:
                if self._most > 1 and sum(result.get("rejected_counts", {}).values()) > len(result["rejected"]):
                    # Not all that are rejected are listed. Asked again in smaller parts, the service lists them.
                    self._delivery.counted += result["accepted"]
                    self._most //= 2
                    return 0.0
                again = self._delivery.count(result, sent)
            except (AttributeError, KeyError, IndexError, TypeError):
                result = RolltopError("unexpected_answer", "an answer that is none of the API", status=200)
            else:
                self._left, self._unknown_since = again + rest, None
                if not again:
                    self._began, self._attempt = now, 0
                    return 0.0 if self._left else None
                problem = {"code": "memory_full"}
                result = RolltopError("memory_full", "the service has no memory", status=503, problem=problem)
        if result.status == 413:
            if self._most > 1:
                self._most //= 2
                return 0.0
            # The others are not too large.
            self._delivery.fail(self._left[:1], result)
            self._left = self._left[1:]
            self._most = len(self._left)
            return 0.0 if self._left else None
        if result.is_unknown:
            self._unknown_since = self._unknown_since or now
        seconds = pause(self._attempt, result.retry_after)
        if not result.is_transient or self._is_over(now + seconds):
            self._delivery.fail(self._left, result)
            return None
        if self._attempt == 2 or now - self._said > SAY_AGAIN:
            self._said = now
            log.warning("%d items are sent again in %.1f s: %s", len(self._left), seconds, result)
        self._attempt += 1
        return seconds

    def abandon(self, *, is_raised: bool) -> None:
        self._delivery.abandon(self._left, is_raised=is_raised)

    def _is_over(self, then: float) -> bool:
        reports = self._delivery.reports
        if self._unknown_since is not None and then - self._unknown_since > reports.unknown_for:
            return True
        return reports.give_up_after is not None and then - self._began > reports.give_up_after
