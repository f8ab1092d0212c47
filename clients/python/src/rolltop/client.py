"""The client for programs with threads."""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack, cast

import httpx2

from . import calls, schema
from .calls import Call, InPage, InRanking, Item, Over
from .delivery import Delivery, Reports
from .errors import RolltopError
from .live import Lines, LiveRanking, export_lines
from .numbers import parse, print_json
from .pauses import pause
from .queue import Batching, Queue, new_id

T = TypeVar("T")
# The number of lines that are read at once of an export.
PIECE = 10_000


class Sender:
    """Sends what is put into a queue, batch by batch, in a thread of its own."""

    def __init__(self, client: Rolltop, delivery: Delivery, batching: Batching) -> None:
        self._client, self.delivery = client, delivery
        self.batching = batching
        self.begin()

    def begin(self) -> None:
        """Begins with nothing, also in a child process: the thread and what waits stay with the parent."""
        self._queue = Queue(self.batching)
        self._changed = threading.Condition()
        self._flushing, self._closing = 0, False
        self._since = 0.0
        self._thread = threading.Thread(target=self._run, name="rolltop-sender", daemon=True)
        self._thread.start()

    def add(self, item: dict[str, Any]) -> bool:
        """Adds an item. Returns False if it was dropped."""
        with self._changed:
            if self._closing:
                raise RuntimeError("the client is closed")
            if self._queue.combine(item):
                return True
            while self._queue.is_full():
                if self.batching.drops:
                    self._queue.dropped += 1
                    return False
                self._changed.wait()
                if self._closing:
                    raise RuntimeError("the client was closed while an item waited for room")
            if len(self._queue) == 0:
                self._since = time.monotonic()
                self._changed.notify_all()
            self._queue.add(item)
            if self._queue.is_due():
                self._changed.notify_all()
            return True

    @property
    def dropped(self) -> int:
        return self._queue.dropped

    def flush(self, timeout: float | None) -> bool:
        with self._changed:
            self._flushing += 1
            self._changed.notify_all()
            before = self._queue.added
            done = self._changed.wait_for(lambda: self._queue.done >= before, timeout)
            self._flushing -= 1
        self.delivery.raise_failure()
        return done

    def close(self, timeout: float | None) -> bool:
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(timeout)
        self.delivery.raise_failure()
        return not self._thread.is_alive()

    def _next(self) -> list[dict[str, Any]] | None:
        """Waits for the next batch. Returns None after the last one."""
        with self._changed:
            while True:
                if len(self._queue) > 0:
                    left = self._since + self.batching.seconds - time.monotonic()
                    if left <= 0 or self._queue.is_due() or self._flushing or self._closing:
                        batch = self._queue.take()
                        self._since = time.monotonic()
                        self._changed.notify_all()
                        return batch
                    self._changed.wait(left)
                elif self._closing:
                    return None
                else:
                    self._changed.wait()

    def _run(self) -> None:
        while (batch := self._next()) is not None:
            self._send(batch)
            with self._changed:
                self._queue.done += len(batch)
                self._changed.notify_all()

    def _send(self, batch: list[dict[str, Any]]) -> None:
        call, began = self.delivery.call(batch), time.monotonic()
        for attempt in range(1 << 62):
            try:
                self.delivery.answered(batch, self._client.send_once(call))
                return
            except RolltopError as error:
                seconds = self.delivery.next_pause(attempt, began, error)
                if seconds is None:
                    self.delivery.gave_up(batch, error)
                    return
                time.sleep(seconds)


class Rolltop:
    """A service. Usable from several threads; `close` it, or use it with `with`, so that everything is sent.

    - `key`: a key of the service, `rt_…`, or a token.
    - `timeout`: seconds that one attempt of a call may take.
    - `retries`: the number of further attempts of a call that was not answered, or is to be repeated later.
    - `exit_timeout`: seconds that the end of the program waits for what was not sent yet.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8080",
        key: str | None = None,
        *,
        timeout: float = 10.0,
        retries: int = 4,
        exit_timeout: float = 10.0,
    ) -> None:
        headers = {"authorization": f"Bearer {key}"} if key else {}
        self._connect: Callable[[], httpx2.Client] = lambda: httpx2.Client(
            base_url=url, headers=headers, timeout=timeout
        )
        self._retries, self._exit_timeout = retries, exit_timeout
        self._senders: dict[str, Sender] = {}
        self._begin()
        _CLIENTS.add(self)

    def _begin(self) -> None:
        self._http, self._lock = self._connect(), threading.Lock()
        for sender in self._senders.values():
            sender.begin()

    def board(self, name: str, batching: Batching | None = None, reports: Reports | None = None) -> Board:
        """Returns a board. All objects of one board share what waits, so `batching` and `reports` are given once."""
        return Board(self, name, batching, reports)

    def event(
        self,
        kind: str,
        fields: Mapping[str, object],
        *,
        at: str | None = None,
        id: str | None = None,
        batching: Batching | None = None,
        reports: Reports | None = None,
    ) -> bool:
        """Adds an event, which counts on every board whose metric names its type. Returns False if it was dropped."""
        event = calls.event(kind, fields, at, id)
        return self.sender("/v1/events", "events", batching, reports).add(event)

    def flush(self, timeout: float | None = None) -> bool:
        """Waits until everything that was added is acknowledged. Returns False if that takes longer."""
        return all([sender.flush(timeout) for sender in list(self._senders.values())])

    def close(self, timeout: float | None = None) -> bool:
        """Sends everything that was added, and ends. Returns False if something was not sent in time."""
        done = all([sender.close(timeout) for sender in list(self._senders.values())])
        self._http.close()
        return done

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def boards(self) -> schema.BoardList:
        return self.call(calls.boards())

    def query(self, queries: Sequence[Mapping[str, object]]) -> schema.Answers:
        """Answers up to 1,000 questions about single subjects."""
        return self.call(calls.query(queries))

    def evaluate(self, rule: str, fields: Mapping[str, object]) -> schema.Evaluations:
        return self.call(calls.evaluate(rule, fields))

    def request(self, method: str, path: str, body: object = None, **params: object) -> Any:
        """Makes any other call of the API, such as `request("POST", "/v1/backup")`. A POST is not repeated."""
        return self.call(Call(method, path, params, body, method != "POST"))

    def call(self, call: Call[T]) -> T:
        for attempt in range(self._retries if call.is_repeatable else 0):
            try:
                return self.send_once(call)
            except RolltopError as error:
                if not error.is_transient:
                    raise
                time.sleep(pause(attempt, error.retry_after))
        return self.send_once(call)

    def send_once(self, call: Call[T]) -> T:
        return cast(T, parse(self._answer(call, {}).content))

    def piece(self, call: Call[T]) -> bytes:
        return self._answer(call, {"accept": "application/x-ndjson"}).content

    def _answer(self, call: Call[T], headers: dict[str, str]) -> httpx2.Response:
        content = None if call.body is None else print_json(call.body)
        if content is not None:
            headers = {**headers, "content-type": "application/json"}
        try:
            response = self._http.request(call.method, call.path, params=call.query(), content=content, headers=headers)
        except httpx2.HTTPError as error:
            raise RolltopError.of_transport(error) from error
        if not response.is_success:
            raise RolltopError.of_answer(response)
        return response

    def stream(self, path: str, params: Mapping[str, str], last_id: str) -> Iterator[str]:
        headers = {"accept": "text/event-stream", **({"last-event-id": last_id} if last_id else {})}
        # The service sends a comment every 15 seconds.
        timeout = httpx2.Timeout(10.0, read=40.0)
        try:
            with self._http.stream("GET", path, params=params, headers=headers, timeout=timeout) as response:
                if not response.is_success:
                    response.read()
                    raise RolltopError.of_answer(response)
                yield from response.iter_lines()
        except httpx2.HTTPError as error:
            raise RolltopError.of_transport(error) from error

    def sender(self, path: str, name: str, batching: Batching | None, reports: Reports | None) -> Sender:
        with self._lock:
            sender = self._senders.get(path)
            if sender is None:
                delivery = Delivery(path, name, reports or Reports())
                sender = self._senders[path] = Sender(self, delivery, batching or Batching())
            sender.delivery.check(sender.batching, batching, reports)
            return sender

    def close_at_exit(self) -> None:
        if self._senders:
            self.close(self._exit_timeout)

    def begin_after_fork(self) -> None:
        # Connections stay with the parent too.
        self._begin()


_CLIENTS: weakref.WeakSet[Rolltop] = weakref.WeakSet()


def _begin_after_fork() -> None:
    for client in list(_CLIENTS):
        client.begin_after_fork()


@atexit.register
def _close_at_exit() -> None:
    for client in list(_CLIENTS):
        client.close_at_exit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_after_fork)


class Board:
    """A board of a service."""

    def __init__(self, client: Rolltop, name: str, batching: Batching | None, reports: Reports | None) -> None:
        self._client, self.name = client, name
        self._batching, self._reports = batching, reports

    def add(self, subject: str, amount: int | Decimal | float | None = None, **more: Unpack[Item]) -> bool:
        """Adds 1 or an amount to a subject, with the next batch. Returns False if it was dropped."""
        return self._sender().add(calls.item(subject, amount, more))

    def add_now(
        self, subject: str, amount: int | Decimal | float | None = None, **more: Unpack[Item]
    ) -> schema.Receipt:
        """Adds 1 or an amount at once. Returns when it is acknowledged."""
        item = {"id": new_id(), **calls.item(subject, amount, more)}
        return self._client.call(Call("POST", calls.of_board(self.name, "increments"), body=item))

    def delivery(self) -> Delivery:
        """Returns what became of the items so far."""
        return self._sender().delivery

    @property
    def dropped(self) -> int:
        """The number of items that were dropped, because too many waited."""
        return self._sender().dropped

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
            lines, end = self._piece(wanted)
            yield from lines
            if end["next"] is None:
                return
            wanted["cursor"] = end["next"]

    def _piece(self, wanted: InPage) -> tuple[Iterator[schema.RankingEntry], schema.ExportEnd]:
        attempt = 0
        while True:
            try:
                return export_lines(self._client.piece(calls.top(self.name, wanted)))
            except RolltopError as error:
                if not error.is_transient or attempt >= 4:
                    raise
                time.sleep(pause(attempt, error.retry_after))
                attempt += 1

    def live(self, **options: Unpack[InPage]) -> Iterator[schema.Ranking]:
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
                if not error.is_transient:
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

    def _sender(self) -> Sender:
        path = calls.of_board(self.name, "increments")
        return self._client.sender(path, "increments", self._batching, self._reports)
