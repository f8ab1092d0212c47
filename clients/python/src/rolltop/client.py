"""The client for programs with threads."""

from __future__ import annotations

import atexit
import itertools
import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack, cast

import httpx2

from . import calls, schema
from .calls import Amount, Call, InKeys, InLive, InPage, InPeriod, InPeriods, InRanking, Item, Over, Page, Shown
from .delivery import Delivery, Reports
from .errors import RolltopError
from .live import Lines, LiveRanking, export_lines
from .numbers import print_item
from .pauses import pause
from .queue import Batching, new_id
from .sender import Sender
from .way import STREAM_TIMEOUT, Way, answer, connecting, next_pause, parsed, printed, stream_headers

T = TypeVar("T")
log = logging.getLogger("rolltop")
# The number of lines that are read at once of an export.
PIECE = 10_000
# The seconds that the reports of what was not sent in time may take.
REPORTING = 1.0


class Rolltop:
    """A service. Usable from several threads; `close` it, or use it with `with`, so that everything is sent.

    Calls raise `RolltopError` if they fail, `ValueError` or `TypeError` for what cannot be sent, and `RuntimeError`
    after `close`. Times are texts such as `2026-01-02T10:07:00Z`, lengths of time such as `30m`, `24h` or `7d`.

    - `key`: a key of the service, `rt_…`, or a token.
    - `timeout`: seconds for which a call waits for a connection, and for each next part of an answer.
    - `repeat_for`: the seconds for which a call that was not answered, or is to be sent again, is repeated.
    - `exit_timeout`: seconds that the end of the program, or of a `with` by an exception, waits for what was not sent.
    - `batching`, `reports`: of events. Boards have their own.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8080",
        key: str | None = None,
        *,
        timeout: float = 10.0,
        repeat_for: float = 10.0,
        exit_timeout: float = 10.0,
        batching: Batching | None = None,
        reports: Reports | None = None,
    ) -> None:
        how = connecting(url, key, timeout)
        self._connect: Callable[[], httpx2.Client] = lambda: httpx2.Client(**how)
        self.repeat_for, self._exit_timeout = repeat_for, exit_timeout
        self._is_closed = False
        self._ways: dict[str, Way[Sender]] = {}
        self._begin()
        self._events = self._way("/v1/events", "events")
        self._events.choose(batching, reports)
        _CLIENTS.add(self)

    def _begin(self) -> None:
        """Begins with nothing, also in a child process: connections, threads and what waits stay with the parent."""
        self._http, self._lock = self._connect(), threading.Lock()
        for way in self._ways.values():
            way.sender, way.delivery = None, Delivery(way.path, way.name, way.delivery.reports)

    def board(self, name: str, batching: Batching | None = None, reports: Reports | None = None) -> Board:
        """Returns a board, which need not exist yet. All objects of one board share what waits, so `batching` and
        `reports` are given once: raises `ValueError` if they differ from what was given before."""
        way = self._way(calls.of_board(name, "increments"), "increments")
        way.choose(batching, reports)
        return Board(self, name, way)

    def event(
        self,
        kind: str,
        fields: Mapping[str, object],
        *,
        at: str | datetime | None = None,
        id: str | None = None,
        retract: bool | None = None,
    ) -> bool:
        """Adds an event, which counts on every board whose metric names its type, with the next batch. Waits, or drops
        it, as `Board.add` does. Returns False if it was dropped."""
        return self._sender(self._events).add(calls.event(kind, fields, {"at": at, "id": id, "retract": retract}))

    def flush(self, timeout: float | None = None) -> bool:
        """Waits until everything that was added before is acknowledged, rejected or given up, for `timeout` seconds at
        most. Returns False if that takes longer. Raises the first error of what was given up, if no function is
        told."""
        until = None if timeout is None else time.monotonic() + timeout
        self._refuse_in_reports()
        done = all([sender.flush(until) for sender in self._senders()])
        self._raise_failure()
        return done

    def close(self, timeout: float | None = None) -> bool:
        """Sends everything that was added, and ends. Returns False if something was not sent within `timeout` seconds;
        it is reported as failed, with the code `abandoned`. Raises what `flush` raises."""
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
        """Reads the boards that exist, with their definitions."""
        return self._call(calls.boards())

    def query(self, queries: Sequence[Mapping[str, object]]) -> schema.Answers:
        """Answers up to 1,000 questions about single subjects, such as `{"board": "hot-posts", "subject": "post-1"}`.
        An answer without a value has an `error`."""
        return self._call(calls.query(queries))

    def evaluate(self, rule: str, fields: Mapping[str, object]) -> schema.Evaluations:
        """Evaluates a rule, such as `COUNT(30m, login, device_id) > 3`, for an event with these fields. `hit` says
        whether it applies. Nothing is counted."""
        return self._call(calls.evaluate(rule, fields))

    def request(self, method: str, path: str, body: object = None, **params: object) -> Any:
        """Makes any other call of the API that answers with JSON, such as `request("POST", "/v1/backup")`. `params` are
        those of the URL. Only GET and PUT are sent again after an error."""
        return self._call(Call(method, path, params, body, method in ("GET", "PUT")))

    def _call(self, call: Call[T]) -> T:
        return self._repeated(call, lambda: self._send_once(call))

    def _repeated(self, call: Call[Any], attempt_once: Callable[[], T]) -> T:
        end = time.monotonic() + self.repeat_for
        for attempt in itertools.count():
            try:
                return attempt_once()
            except RolltopError as error:
                seconds = next_pause(call, error, attempt, end)
            time.sleep(seconds)
        raise AssertionError("unreachable")

    def _send_once(self, call: Call[T]) -> T:
        return cast(T, parsed(self._answer(call, "application/json")))

    def _export_piece(self, call: Call[Any]) -> tuple[Iterator[schema.RankingEntry], schema.ExportEnd]:
        return self._repeated(call, lambda: export_lines(self._answer(call, "application/x-ndjson").content))

    def _answer(self, call: Call[Any], accept: str) -> httpx2.Response:
        content, headers = printed(call, accept)
        try:
            response = self._http.request(call.method, call.path, params=call.query(), content=content, headers=headers)
        except httpx2.HTTPError as error:
            raise RolltopError.of_transport(error) from error
        return answer(response, accept)

    def _stream(self, path: str, params: Mapping[str, str], last_id: str) -> Iterator[str]:
        headers = stream_headers(last_id)
        try:
            with self._http.stream("GET", path, params=params, headers=headers, timeout=STREAM_TIMEOUT) as response:
                if not response.is_success:
                    response.read()
                yield from answer(response, "text/event-stream").iter_lines()
        except httpx2.HTTPError as error:
            raise RolltopError.of_transport(error) from error

    def _way(self, path: str, name: str) -> Way[Sender]:
        with self._lock:
            return self._ways.setdefault(path, Way(path, name))

    def _sender(self, way: Way[Sender]) -> Sender:
        with self._lock:
            if self._is_closed:
                raise RuntimeError("the client is closed")
            if way.sender is None:
                way.sender = Sender(self._send_once, way.delivery, way.batching or Batching())
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

    def _close_at_exit(self, began: float) -> None:
        if not self._is_closed and self._senders():
            self.close(max(0.0, self._exit_timeout - (time.monotonic() - began)))

    def _begin_after_fork(self) -> None:
        self._begin()


_CLIENTS: weakref.WeakSet[Rolltop] = weakref.WeakSet()


def _begin_after_fork() -> None:
    for client in list(_CLIENTS):
        client._begin_after_fork()


@atexit.register
def _close_at_exit() -> None:
    began = time.monotonic()
    for client in list(_CLIENTS):
        try:
            client._close_at_exit(began)
        except RolltopError:
            # It is logged. The other clients may have something to send.
            log.debug("at the end of the program", exc_info=True)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_after_fork)


class Board:
    """A board of a service, from `Rolltop.board`. Options of reads: `window`, on a board with several windows; `by`,
    the key, on a board with BY; `of`, `next` or `previous`, for the other edition; `period`, the name of a period, on a
    board with a season, which `live`, `count`, `best` and `keys` do not take; `attributes`, the names of attributes that
    each line is to have, such as `["name", "picture"]`, or `*` for all, of what returns lines, and of `subject`."""

    def __init__(self, client: Rolltop, name: str, way: Way[Sender]) -> None:
        self._client, self.name, self._way = client, name, way

    def add(self, subject: str, amount: Amount | None = None, **more: Unpack[Item]) -> bool:
        """Adds 1 or an amount to a subject, with the next batch.

        A text such as "19.99" is that number, exactly. What is no number is an error at once, and is not sent. Does not
        wait for the service, but for room if as many items wait as may. Returns False if it was dropped. More: `by`,
        the key, on a board with BY; `at`, its time, by default that of its arrival; `id`, by which it counts once, by
        default a random one; `value` in place of an amount, for AVG, MIN, MAX and LAST; `retract=True`, to take an
        item back; `attributes`, to merge with those of the subject after the item was counted, in which None removes one.
        """
        return self._client._sender(self._way).add(calls.item(subject, amount, more))

    def add_now(
        self,
        subject: str,
        amount: Amount | None = None,
        *,
        period: str | None = None,
        **more: Unpack[Item],
    ) -> schema.Receipt:
        """Adds 1 or an amount at once, and waits for the answer. An item that is not counted, such as one that is too
        late, is in its `rejected`, or raises `RolltopError` if it is not valid. It is sent again with the same id. With
        `period` it counts in that period or not at all, on a board with a season."""
        item = {"id": new_id(), **calls.item(subject, amount, more)}
        return self._client._call(Call("POST", self._way.path, {"period": period}, print_item(item).encode()))

    @property
    def delivery(self) -> Delivery:
        """What became of the items of this process so far."""
        return self._way.delivery

    @property
    def dropped(self) -> int:
        """The number of items that were dropped, because too many waited."""
        return self._way.sender.dropped if self._way.sender else 0

    def top(self, **options: Unpack[InPage]) -> schema.Ranking:
        """Reads a page of the ranking: `limit` lines, 1,000 at most, from the line `offset` or the `cursor` on."""
        return self._client._call(calls.top(self.name, options))

    def lines(self, **options: Unpack[InPage]) -> Iterator[schema.RankingEntry]:
        """Reads the ranking page by page, `limit` lines at a time. Each page is of its own instant."""
        wanted = cast(InPage, {"limit": 1000, **options})
        while True:
            page = self.top(**wanted)
            yield from page["items"]
            if page["next"] is None:
                return
            wanted["cursor"] = page["next"]
            wanted.pop("offset", None)

    def export(self, **options: Unpack[Shown]) -> Iterator[schema.RankingEntry]:
        """Reads the whole ranking in large pieces, each of which is repeated after an error."""
        wanted = cast(InPage, {"limit": PIECE, **options})
        while True:
            lines, end = self._client._export_piece(calls.top(self.name, wanted))
            yield from lines
            if end["next"] is None:
                return
            wanted["cursor"] = end["next"]

    def live(self, **options: Unpack[InLive]) -> Generator[schema.Ranking, None, None]:
        """Follows the first lines of the ranking: yields them now and after each change, for ever. Survives restarts of
        the service and of the network; raises if the board is removed."""
        live, attempt = LiveRanking(), 0
        call = calls.top(self.name, options)
        while True:
            reader, pause_after = Lines(), None
            try:
                for line in self._client._stream(calls.of_board(self.name, "stream"), call.query(), live.last_id):
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
        self, subjects: Iterable[str], *, ranks: bool = True, **options: Unpack[Shown]
    ) -> schema.LookupResult:
        """Reads score and rank of up to 200 subjects, or the scores of up to 1,000 without ranks."""
        return self._client._call(calls.lookup(self.name, subjects, ranks, options))

    def best(self, keys: Iterable[str], limit: int = 10, **options: Unpack[InKeys]) -> schema.Rankings:
        """Reads the first lines of the rankings of up to 100 keys."""
        return self._client._call(calls.best(self.name, keys, limit, options))

    def subject(self, name: str, **options: Unpack[Shown]) -> schema.Standing:
        """Reads score and rank of a subject, and what it has in each slot. The rank is None if it has none."""
        return self._client._call(calls.subject(self.name, name, options))

    def neighbors(self, name: str, radius: int = 5, **options: Unpack[Shown]) -> schema.Neighbors:
        """Reads the line of a subject and `radius` lines before and after it."""
        return self._client._call(calls.neighbors(self.name, name, radius, options))

    def count(self, name: str, **options: Unpack[Over]) -> schema.WindowValue:
        """Reads what a subject has in a shorter window: the `last` 30m, or `from_` a time on, now or `as_of` a time in
        the past. With `edge="weighted"` the oldest slot counts in part."""
        return self._client._call(calls.count(self.name, name, options))

    def distribution(
        self,
        percentiles: Iterable[Amount] = (),
        scores: Iterable[Amount] = (),
        **options: Unpack[InPeriod],
    ) -> schema.Distribution:
        """Reads the scores at up to 100 `percentiles`, and the numbers of subjects between up to 100 `scores`, each
        greater than the one before. Without percentiles it reads those that the service chooses."""
        return self._client._call(calls.distribution(self.name, percentiles, scores, options))

    def periods(self, **options: Unpack[InPeriods]) -> schema.PeriodList:
        """Reads the periods of a board with a season, the oldest first, each with the first lines of its ranking:
        `winners` of them, by default 3; on boards with BY those of the key `by`. With `final=True` only those in which
        nothing counts any more; with `after` only those after the one of this name; `limit` of them at most."""
        return self._client._call(calls.periods(self.name, options))

    def close_period(self, period: str | None = None) -> schema.ClosedPeriod:
        """Closes the current period of a board whose periods are closed by hand. If the `period` of this name has been
        closed already, nothing is done, so name it wherever you can: then the call is repeated like others. Without a
        name it closes what is current, and is sent once."""
        return self._client._call(calls.close_period(self.name, period))

    def tiers(self) -> schema.Tiers:
        """Reads the tiers: the named parts of the ranking, the best first."""
        return self._client._call(calls.tiers(self.name))

    def set_tiers(self, tiers: Iterable[Mapping[str, object]]) -> schema.Tiers:
        """Sets up to 16 tiers in place of those before, the best first. Each has one bound: `{"name": "gold", "top": 5}`,
        `{"name": "silver", "rank": 100}` or `{"name": "bronze", "score": 10}`. Without any the board has none."""
        return self._client._call(calls.set_tiers(self.name, tiers))

    def keys(self, prefix: str = "", **options: Unpack[InRanking]) -> Iterator[str]:
        """Reads the keys that have a ranking and begin with a text."""
        for page in self._pages(lambda cursor: calls.keys(self.name, prefix, cursor, options)):
            yield from (item["by"] for item in page["items"])

    def status(self) -> schema.BoardStatus:
        """Reads the definition, the window and the number of subjects."""
        return self._client._call(calls.status(self.name))

    def define(self, definition: Mapping[str, object], *, dry_run: bool = False) -> schema.DefineAnswer:
        """Defines the board, such as `{"metric": "COUNT(24h, like, post_id)", "slot": "1h"}`. A board with the same
        definition stays as it is; with another one, raises `board_conflict`. `dry_run` tells what it would do."""
        return self._client._call(calls.define(self.name, definition, dry_run))

    def undefine(self) -> schema.DefinedBoard:
        """Removes the board with its data."""
        return self._client._call(calls.undefine(self.name))

    def remove(self, subject: str, *, by: str | None = None, all_keys: bool = False) -> schema.Removal:
        """Removes a subject from the ranking and every slot, with `all_keys` from the rankings of all keys."""
        return self._client._call(calls.remove(self.name, subject, by, all_keys))

    def remove_values(self, values: Sequence[str], *, by: str | None = None) -> schema.ValueRemovalsReceipt:
        """Removes up to 1,000 values of a COUNT_DISTINCT board from all subjects, such as the likes that a person gave.
        It passes over everything that the board holds: give the client a `timeout` that is long enough."""
        return self._client._call(calls.remove_values(self.name, values, by))

    def hide(self, subject: str, *, shadow: bool = False, by: str | None = None) -> schema.Hiding:
        """Takes a subject out of the rankings; it goes on counting. With `shadow` its own standing has the rank that it
        would have."""
        return self._client._call(calls.hide(self.name, subject, shadow, by))

    def show(self, subject: str, *, by: str | None = None) -> schema.Hiding:
        """Shows a hidden subject again, with everything that it has counted."""
        return self._client._call(calls.show(self.name, subject, by))

    def freeze(self, subject: str, *, by: str | None = None) -> schema.Freezing:
        """Has nothing count for a subject any more. What it has leaves the window slot by slot."""
        return self._client._call(calls.freeze(self.name, subject, by))

    def unfreeze(self, subject: str, *, by: str | None = None) -> schema.Freezing:
        """Has items of a subject count again."""
        return self._client._call(calls.unfreeze(self.name, subject, by))

    def hide_all(self, subjects: Iterable[Mapping[str, object]]) -> schema.ModerationReceipt:
        """Hides up to 100,000 subjects, such as `{"subject": "a", "shadow": True}`, or shows those with
        `"hidden": False`."""
        return self._client._call(calls.moderate_all(self.name, "hidden", subjects))

    def freeze_all(self, subjects: Iterable[Mapping[str, object]]) -> schema.ModerationReceipt:
        """Freezes up to 100,000 subjects, such as `{"subject": "a"}`, or ends that for those with `"frozen": False`."""
        return self._client._call(calls.moderate_all(self.name, "frozen", subjects))

    def hidden(self, prefix: str = "", *, by: str | None = None) -> Iterator[schema.ModeratedSubject]:
        """Reads the hidden subjects that begin with a text, of all keys or of one. With keys, a prefix needs `by`."""
        return self._moderated("hidden", prefix, by)

    def frozen(self, prefix: str = "", *, by: str | None = None) -> Iterator[schema.ModeratedSubject]:
        """Reads the frozen subjects, as `hidden` reads the hidden ones."""
        return self._moderated("frozen", prefix, by)

    def attributes(self, subject: str, *, by: str | None = None) -> dict[str, Any]:
        """Reads the attributes of a subject, such as its name; an empty dictionary if it has none. `by` is the key, if the board
        that keeps them has BY."""
        return (self._client._call(calls.attributes(self.name, subject, by)))["attributes"]

    def set_attributes(
        self, subject: str, attributes: Mapping[str, object], *, by: str | None = None
    ) -> dict[str, Any] | None:
        """Sets all attributes of a subject in place of those that it has, and returns them: None without the scope `view`."""
        call = calls.change_attributes("PUT", self.name, subject, attributes, by)
        return self._client._call(call).get("attributes")

    def change_attributes(
        self, subject: str, attributes: Mapping[str, object], *, by: str | None = None
    ) -> dict[str, Any] | None:
        """Sets these attributes of a subject, removes those that are None, and keeps the others. Returns what
        `set_attributes` returns."""
        call = calls.change_attributes("PATCH", self.name, subject, attributes, by)
        return self._client._call(call).get("attributes")

    def remove_attributes(self, subject: str, *, by: str | None = None) -> None:
        """Removes all attributes of a subject, and nothing else."""
        self._client._call(calls.remove_attributes(self.name, subject, by))

    def describe_all(self, subjects: Iterable[Mapping[str, object]]) -> schema.ModerationReceipt:
        """Changes the attributes of up to 100,000 subjects, such as `{"subject": "a", "attributes": {"name": "Ann"}}`, as
        `change_attributes` does; None in place of the dictionary removes all of a subject."""
        return self._client._call(calls.describe_all(self.name, subjects))

    def described(self, prefix: str = "") -> Iterator[schema.DescribedSubject]:
        """Reads the subjects that have attributes and begin with a text, with their attributes. Where the board that keeps them
        has BY, the keys begin with it."""
        for page in self._pages(lambda cursor: calls.described(self.name, prefix, cursor)):
            yield from page["items"]

    def _moderated(self, what: str, prefix: str, by: str | None) -> Iterator[schema.ModeratedSubject]:
        for page in self._pages(lambda cursor: calls.moderated(self.name, what, prefix, by, cursor)):
            yield from page["items"]

    def _pages(self, call: Callable[[str | None], Call[Page]]) -> Iterator[Page]:
        cursor: str | None = None
        while True:
            page = self._client._call(call(cursor))
            yield page
            cursor = page["next"]
            if cursor is None:
                return
