"""The client for programs with threads."""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack, cast

import httpx2

from . import calls, schema
from .calls import Call, InPage, InRanking, Item, Over
from .delivery import Delivery, Reports, Sending
from .errors import RolltopError
from .live import Lines, LiveRanking, export_lines
from .pauses import pause
from .queue import Batching, Queue, Waiting, new_id
from .way import STREAM_TIMEOUT, Way, answer, connecting, is_worth_waiting, parsed, printed, stream_headers

T = TypeVar("T")
log = logging.getLogger("rolltop")
# The number of lines that are read at once of an export.
PIECE = 10_000
# The seconds that the reports of what was not sent in time may take.
REPORTING = 1.0


class Sender:
    """Sends what is put into a queue, batch by batch, in a thread of its own."""

    def __init__(self, client: Rolltop, delivery: Delivery, batching: Batching) -> None:
        self._client, self._delivery = client, delivery
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
                return self._changed.wait_for(lambda: self._queue.done >= before, _left(until))
            finally:
                self._queue.flushing -= 1

    def begin_to_close(self) -> None:
        with self._changed:
            self._queue.closing = True
            self._changed.notify_all()

    def close(self, until: float | None) -> bool:
        """Waits for the end, at most until this time. What was not sent then is given up."""
        self._thread.join(_left(until))
        with self._changed:
            self._is_abandoned |= self._thread.is_alive()
            self._changed.notify_all()
        return not self._is_abandoned

    def report_rest(self, until: float) -> None:
        """Waits until what was given up is reported, at most until this time."""
        self._thread.join(_left(until))
        if self._thread.is_alive():
            left = self._queue.added - self._queue.done
            log.error("%d items of %s may not have been sent: the service does not answer", left, self._delivery.path)

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
        self._delivery.abandon(rest)
        return None

    def _send(self, batch: list[Waiting]) -> None:
        sending, seconds = Sending(self._delivery, batch), 0.0
        while True:
            try:
                result: Any = self._client.send_once(sending.call())
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
                sending.abandon()
                return


def _left(until: float | None) -> float | None:
    return None if until is None else min(max(0.0, until - time.monotonic()), threading.TIMEOUT_MAX)


class Rolltop:
    """A service. Usable from several threads; `close` it, or use it with `with`, so that everything is sent.

    - `key`: a key of the service, `rt_…`, or a token.
    - `timeout`: seconds for which a call waits for a connection, and for each next part of an answer.
    - `retries`: the number of further attempts of a call that was not answered, or is to be sent again.
    - `exit_timeout`: seconds that the end of the program, or of a `with` by an exception, waits for what was not sent.
    - `batching`, `reports`: of events. Boards have their own.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8080",
        key: str | None = None,
        *,
        timeout: float = 10.0,
        retries: int = 4,
        exit_timeout: float = 10.0,
        batching: Batching | None = None,
        reports: Reports | None = None,
    ) -> None:
        how = connecting(url, key, timeout)
        self._connect: Callable[[], httpx2.Client] = lambda: httpx2.Client(**how)
        self.retries, self._exit_timeout = retries, exit_timeout
        self._is_closed = False
        self._ways: dict[str, Way[Sender]] = {}
        self._begin()
        self._events = self.way("/v1/events", "events")
        self._events.choose(batching, reports)
        _CLIENTS.add(self)

    def _begin(self) -> None:
        """Begins with nothing, also in a child process: connections, threads and what waits stay with the parent."""
        self._http, self._lock = self._connect(), threading.Lock()
        for way in self._ways.values():
            way.sender, way.delivery = None, Delivery(way.path, way.name, way.delivery.reports)

    def board(self, name: str, batching: Batching | None = None, reports: Reports | None = None) -> Board:
        """Returns a board. All objects of one board share what waits, so `batching` and `reports` are given once."""
        way = self.way(calls.of_board(name, "increments"), "increments")
        way.choose(batching, reports)
        return Board(self, name, way)

    def event(self, kind: str, fields: Mapping[str, object], *, at: str | None = None, id: str | None = None) -> bool:
        """Adds an event, which counts on every board whose metric names its type. Returns False if it was dropped."""
        return self.sender(self._events).add(calls.event(kind, fields, at, id))

    def flush(self, timeout: float | None = None) -> bool:
        """Waits until everything that was added before is acknowledged. Returns False if that takes longer."""
        until = None if timeout is None else time.monotonic() + timeout
        self._refuse_in_reports()
        done = all([sender.flush(until) for sender in self._senders()])
        self._raise_failure()
        return done

    def close(self, timeout: float | None = None) -> bool:
        """Sends everything that was added, and ends. Returns False if something was not sent in time."""
        until = None if timeout is None else time.monotonic() + timeout
        self._refuse_in_reports()
        with self._lock:
            self._is_closed = True
        senders = self._senders()
        for sender in senders:
            sender.begin_to_close()
        done = all([sender.close(until) for sender in senders])
        self._http.close()
        if not done:
            reported = time.monotonic() + REPORTING
            for sender in senders:
                sender.report_rest(reported)
        self._raise_failure()
        return done

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
            return
        try:
            self.close(self._exit_timeout)
        except RolltopError:
            # It is logged or reported. The error of the block is the one to raise.
            log.debug("at the end of a block that raised", exc_info=True)

    def boards(self) -> schema.BoardList:
        return self.call(calls.boards())

    def query(self, queries: Sequence[Mapping[str, object]]) -> schema.Answers:
        """Answers up to 1,000 questions about single subjects."""
        return self.call(calls.query(queries))

    def evaluate(self, rule: str, fields: Mapping[str, object]) -> schema.Evaluations:
        return self.call(calls.evaluate(rule, fields))

    def request(self, method: str, path: str, body: object = None, **params: object) -> Any:
        """Makes any other call of the API that answers with JSON, such as `request("POST", "/v1/backup")`. Only GET and
        PUT are sent again after an error."""
        return self.call(Call(method, path, params, body, method in ("GET", "PUT")))

    def call(self, call: Call[T]) -> T:
        return self._repeated(call, lambda: self.send_once(call))

    def _repeated(self, call: Call[Any], attempt_once: Callable[[], T]) -> T:
        for attempt in range(self.retries if call.is_repeatable else 0):
            try:
                return attempt_once()
            except RolltopError as error:
                if not is_worth_waiting(error):
                    raise
                time.sleep(pause(attempt, error.retry_after))
        return attempt_once()

    def send_once(self, call: Call[T]) -> T:
        return cast(T, parsed(self._answer(call, "application/json")))

    def export_piece(self, call: Call[Any]) -> tuple[Iterator[schema.RankingEntry], schema.ExportEnd]:
        return self._repeated(call, lambda: export_lines(self._answer(call, "application/x-ndjson").content))

    def _answer(self, call: Call[Any], accept: str) -> httpx2.Response:
        content, headers = printed(call, accept)
        try:
            response = self._http.request(call.method, call.path, params=call.query(), content=content, headers=headers)
        except httpx2.HTTPError as error:
            raise RolltopError.of_transport(error) from error
        return answer(response, accept)

    def stream(self, path: str, params: Mapping[str, str], last_id: str) -> Iterator[str]:
        headers = stream_headers(last_id)
        try:
            with self._http.stream("GET", path, params=params, headers=headers, timeout=STREAM_TIMEOUT) as response:
                if not response.is_success:
                    response.read()
                yield from answer(response, "text/event-stream").iter_lines()
        except httpx2.HTTPError as error:
            raise RolltopError.of_transport(error) from error

    def way(self, path: str, name: str) -> Way[Sender]:
        with self._lock:
            return self._ways.setdefault(path, Way(path, name))

    def sender(self, way: Way[Sender]) -> Sender:
        with self._lock:
            if self._is_closed:
                raise RuntimeError("the client is closed")
            if way.sender is None:
                way.sender = Sender(self, way.delivery, way.batching or Batching())
            return way.sender

    def _senders(self) -> list[Sender]:
        with self._lock:
            return [way.sender for way in self._ways.values() if way.sender]

    def _refuse_in_reports(self) -> None:
        for sender in self._senders():
            sender.refuse_in_reports()

    def _raise_failure(self) -> None:
        failures = [way.delivery.take_failure() for way in list(self._ways.values())]
        if failure := next(filter(None, failures), None):
            raise failure

    def close_at_exit(self, began: float) -> None:
        if not self._is_closed and self._senders():
            self.close(max(0.0, self._exit_timeout - (time.monotonic() - began)))

    def begin_after_fork(self) -> None:
        self._begin()


_CLIENTS: weakref.WeakSet[Rolltop] = weakref.WeakSet()


def _begin_after_fork() -> None:
    for client in list(_CLIENTS):
        client.begin_after_fork()


@atexit.register
def _close_at_exit() -> None:
    began = time.monotonic()
    for client in list(_CLIENTS):
        try:
            client.close_at_exit(began)
        except RolltopError:
            # It is logged. The other clients may have something to send.
            log.debug("at the end of the program", exc_info=True)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_after_fork)


class Board:
    """A board of a service."""

    def __init__(self, client: Rolltop, name: str, way: Way[Sender]) -> None:
        self._client, self.name, self._way = client, name, way

    def add(self, subject: str, amount: int | Decimal | float | None = None, **more: Unpack[Item]) -> bool:
        """Adds 1 or an amount to a subject, with the next batch. Returns False if it was dropped."""
        return self._client.sender(self._way).add(calls.item(subject, amount, more))

    def add_now(
        self, subject: str, amount: int | Decimal | float | None = None, **more: Unpack[Item]
    ) -> schema.Receipt:
        """Adds 1 or an amount at once, and waits for the answer. An item that is not counted, such as one that is too
        late, is in its `rejected`."""
        item = {"id": new_id(), **calls.item(subject, amount, more)}
        return self._client.call(Call("POST", self._way.path, body=item))

    @property
    def delivery(self) -> Delivery:
        """What became of the items so far."""
        return self._way.delivery

    @property
    def dropped(self) -> int:
        """The number of items that were dropped, because too many waited."""
        return self._way.sender.dropped if self._way.sender else 0

    def top(self, **options: Unpack[InPage]) -> schema.Ranking:
        """Reads a page of the ranking."""
        return self._client.call(calls.top(self.name, options))

    def lines(self, **options: Unpack[InPage]) -> Iterator[schema.RankingEntry]:
        """Reads the ranking page by page. Each page is of its own instant."""
        wanted = cast(InPage, {"limit": 1000, **options})
        while True:
            page = self.top(**wanted)
            yield from page["items"]
            if page["next"] is None:
                return
            wanted["cursor"] = page["next"]
            wanted.pop("offset", None)

    def export(self, **options: Unpack[InRanking]) -> Iterator[schema.RankingEntry]:
        """Reads the whole ranking in large pieces, each of which is repeated after an error."""
        wanted = cast(InPage, {"limit": PIECE, **options})
        while True:
            lines, end = self._client.export_piece(calls.top(self.name, wanted))
            yield from lines
            if end["next"] is None:
                return
            wanted["cursor"] = end["next"]

    def live(self, **options: Unpack[InPage]) -> Generator[schema.Ranking, None, None]:
        """Follows the first lines of the ranking: yields them now and after each change, for ever. Survives restarts of
        the service and of the network; raises if the board is removed."""
        live, attempt = LiveRanking(), 0
        call = calls.top(self.name, options)
        while True:
            reader, pause_after = Lines(), None
            try:
                for line in self._client.stream(calls.of_board(self.name, "stream"), call.query(), live.last_id):
                    if event := reader.read(line):
                        attempt = 0
                        if ranking := live.take(*event):
                            yield ranking
            except RolltopError as error:
                if not error.is_transient or error.code == "unexpected_answer":
                    raise
                pause_after = error.retry_after
            time.sleep(pause(attempt, pause_after))
            attempt += 1

    def lookup(
        self, subjects: Iterable[str], *, ranks: bool = True, **options: Unpack[InRanking]
    ) -> schema.LookupResult:
        """Reads score and rank of up to 200 subjects, or the scores of up to 1,000 without ranks."""
        return self._client.call(calls.lookup(self.name, subjects, ranks, options))

    def best(self, keys: Iterable[str], limit: int = 10, **options: Unpack[InRanking]) -> schema.Rankings:
        """Reads the first lines of the rankings of up to 100 keys."""
        return self._client.call(calls.best(self.name, keys, limit, options))

    def subject(self, name: str, **options: Unpack[InRanking]) -> schema.Standing:
        return self._client.call(calls.subject(self.name, name, options))

    def neighbors(self, name: str, radius: int = 5, **options: Unpack[InRanking]) -> schema.Neighbors:
        return self._client.call(calls.neighbors(self.name, name, radius, options))

    def count(self, name: str, **options: Unpack[Over]) -> schema.WindowValue:
        """Reads what a subject has in a shorter window, such as `last="30m"`."""
        return self._client.call(calls.count(self.name, name, options))

    def keys(self, prefix: str = "", **options: Unpack[InRanking]) -> Iterator[str]:
        """Reads the keys that have a ranking and begin with a text."""
        cursor: str | None = None
        while True:
            page = self._client.call(calls.keys(self.name, prefix, cursor, options))
            yield from (item["by"] for item in page["items"])
            cursor = page["next"]
            if cursor is None:
                return

    def status(self) -> schema.BoardStatus:
        return self._client.call(calls.status(self.name))

    def define(self, definition: Mapping[str, object], *, dry_run: bool = False) -> schema.DefineAnswer:
        """Defines the board, such as `{"metric": "COUNT(24h, like, post_id)", "slot": "1h"}`."""
        return self._client.call(calls.define(self.name, definition, dry_run))

    def undefine(self) -> schema.DefinedBoard:
        """Removes the board with its data."""
        return self._client.call(calls.undefine(self.name))

    def remove(self, subject: str, *, by: str | None = None, all_keys: bool = False) -> schema.Removal:
        return self._client.call(calls.remove(self.name, subject, by, all_keys))
