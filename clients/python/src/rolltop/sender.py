"""The sender of the client for threads."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from .calls import Call
from .delivery import Delivery, Sending
from .errors import RolltopError
from .queue import Batching, Queue, Waiting

log = logging.getLogger("rolltop")


class Sender:
    """Sends what is put into a queue, batch by batch, in a thread of its own."""

    def __init__(self, send: Callable[[Call[Any]], Any], delivery: Delivery, batching: Batching) -> None:
        self._send_once, self._delivery = send, delivery
        self._queue = Queue(batching)
        self._changed = threading.Condition()
        self._is_abandoned = False
        self._thread = threading.Thread(target=self._run, name="rolltop-sender", daemon=True)
        self._thread.start()

    def add(self, item: dict[str, Any]) -> bool:
        """Adds an item. Returns False if it was dropped."""
        queue = self._queue
        with self._changed:
            while True:
                if queue.closing:
                    raise RuntimeError("the client is closed")
                if queue.combine(item):
                    return True
                if not queue.is_full():
                    break
                if queue.batching.drops:
                    queue.dropped += 1
                    return False
                self.refuse_in_reports()
                self._changed.wait()
            queue.add(item, time.monotonic())
            if queue.is_worth_a_look():
                self._changed.notify_all()
            return True

    @property
    def dropped(self) -> int:
        return self._queue.dropped

    def flush(self, until: float | None) -> bool:
        """Waits until what was added is done with, at most until this time."""
        with self._changed:
            before = self._queue.added
            self._queue.flushing += 1
            self._changed.notify_all()
            try:
                return self._changed.wait_for(lambda: self._queue.done >= before, seconds_until(until))
            finally:
                self._queue.flushing -= 1

    def begin_to_close(self) -> None:
        with self._changed:
            self._queue.closing = True
            self._changed.notify_all()

    def close(self, until: float | None) -> bool:
        """Waits for the end, at most until this time. What was not sent then is given up."""
        self._thread.join(seconds_until(until))
        with self._changed:
            self._is_abandoned |= self._thread.is_alive()
            self._changed.notify_all()
        return not self._is_abandoned

    def report_rest(self, until: float) -> None:
        """Waits until what was given up is reported, at most until this time, and then reports it itself."""
        self._thread.join(seconds_until(until))
        with self._changed:
            rest = self._queue.take_rest()
            sent = self._queue.added - self._queue.done
        self._delivery.abandon(rest, is_raised=False)
        if sent:
            log.error("%d items of %s were sent and not acknowledged", sent, self._delivery.path)

    def refuse_in_reports(self) -> None:
        if threading.current_thread() is self._thread:
            raise RuntimeError("a function that takes reports must not wait for the sender that calls it")

    def _run(self) -> None:
        while batch := self._next():
            try:
                self._send(batch)
            except BaseException:
                # Of a function that takes reports, or of the log. The batches after it must be sent all the same.
                threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), self._thread)))
            finally:
                with self._changed:
                    self._queue.done += len(batch)
                    self._changed.notify_all()

    def _next(self) -> list[Waiting] | None:
        """Waits for the next batch. Returns None after the last one."""
        with self._changed:
            while not self._is_abandoned:
                found = self._queue.next(time.monotonic())
                if not isinstance(found, float):
                    self._changed.notify_all()
                    return found
                self._changed.wait(min(found, threading.TIMEOUT_MAX))
            rest = self._queue.take_rest()
            self._changed.notify_all()
        self._delivery.abandon(rest, is_raised=False)
        return None

    def _send(self, batch: list[Waiting]) -> None:
        sending, seconds = Sending(self._delivery, batch), 0.0
        while True:
            try:
                result: Any = self._send_once(sending.call())
            except RolltopError as error:
                result = error
            except Exception as error:
                if not self._is_abandoned:
                    log.exception("a batch cannot be sent")
                result = RolltopError("failed", repr(error), status=400)
            # What fails after the end of the client fails because of that.
            if not (self._is_abandoned and isinstance(result, RolltopError)):
                outcome = sending.outcome(result)
                if outcome is None:
                    return
                seconds = outcome
            with self._changed:
                self._changed.wait_for(lambda: self._is_abandoned, seconds)
            if self._is_abandoned:
                sending.abandon(is_raised=False)
                return


def seconds_until(until: float | None) -> float | None:
    return None if until is None else min(max(0.0, until - time.monotonic()), threading.TIMEOUT_MAX)
