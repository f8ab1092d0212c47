"""The client for programs with asyncio. It does what `Rolltop` does, and its calls have the same descriptions."""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack, cast

import httpx2

from . import calls, schema
from .calls import Amount, Call, InKeys, InLive, InPage, InPeriod, InPeriods, InRanking, Item, Over, Page, Shown
from .client import PIECE, Board, Rolltop
from .delivery import Delivery, Reports, Sending
from .errors import RolltopError
from .live import Lines, LiveRanking, export_lines
from .numbers import print_item
from .pauses import pause
from .queue import Batching, Queue, Waiting, new_id
from .way import STREAM_TIMEOUT, Way, answer, connecting, next_pause, parsed, printed, stream_headers

T = TypeVar("T")
log = logging.getLogger("rolltop")
# The number of calls after which `add` lets others run, even if it need not wait.
TURN = 64
# The number of live rankings that wait for a caller who is slower than they change. Then the newest replaces the one before.
WAITING_RANKINGS = 100


class AsyncSender:
    """Sends what is put into a queue, batch by batch, in a task of its own."""

    def __init__(self, client: AsyncRolltop, delivery: Delivery, batching: Batching) -> None:
        self._client, self._delivery = client, delivery
        self._queue = Queue(batching)
        lock = asyncio.Lock()
        self._changed = asyncio.Condition(lock)
        # Told once for each item that left, not all who wait: there may be thousands.
        self._room = asyncio.Condition(lock)
        self._calls = 0
        self._task = asyncio.create_task(self._run(), name="rolltop-sender")

    async def add(self, item: dict[str, Any]) -> bool:
        queue = self._queue
        self._calls += 1
        if self._calls % TURN == 0:
            # Before: if it is cancelled here, nothing was added.
            await asyncio.sleep(0)
        async with self._changed:
            while True:
                if queue.closing:
                    raise RuntimeError("the client is closed, or its event loop has ended")
                if queue.combine(item):
                    # If it was told of room, that is another's.
                    self._room.notify()
                    return True
                if not queue.is_full():
                    break
                if queue.batching.drops:
                    queue.dropped += 1
                    return False
                try:
                    await self._room.wait()
                except BaseException:
                    # It may have been told of room that it does not take.
                    self._room.notify()
                    raise
            queue.add(item, time.monotonic())
            if queue.is_worth_a_look():
                self._changed.notify_all()
            return True

    @property
    def dropped(self) -> int:
        return self._queue.dropped

    async def flush(self) -> None:
        async with self._changed:
            before = self._queue.added
            self._queue.flushing += 1
            self._changed.notify_all()
            try:
                await self._changed.wait_for(lambda: self._queue.done >= before)
            finally:
                self._queue.flushing -= 1

    async def begin_to_close(self) -> None:
        async with self._changed:
            self._queue.closing = True
            self._changed.notify_all()
            self._room.notify_all()

    async def close(self) -> None:
        # Who waits may be cancelled, and close again. If the task was cancelled, that is reported.
        if not self._task.done():
            await asyncio.wait([self._task])

    async def abandon(self) -> None:
        self._task.cancel()
        if not self._task.done():
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        try:
            while batch := await self._next():
                try:
                    await self._send(batch)
                except Exception as error:
                    # Of the log. The batches after it must be sent all the same.
                    what = {"message": "rolltop: a batch failed", "exception": error, "task": self._task}
                    asyncio.get_running_loop().call_exception_handler(what)
                finally:
                    async with self._changed:
                        self._queue.done += len(batch)
                        self._changed.notify_all()
        finally:
            # There is something left if the task is cancelled.
            async with self._changed:
                rest = self._queue.take_rest()
                self._changed.notify_all()
                self._room.notify_all()
            self._delivery.abandon(rest, is_raised=True)

    async def _next(self) -> list[Waiting] | None:
        async with self._changed:
            while True:
                found = self._queue.next(time.monotonic())
                if not isinstance(found, float):
                    self._room.notify(len(found or ()))
                    return found
                try:
                    async with asyncio.timeout(None if found == math.inf else found):
                        await self._changed.wait()
                except TimeoutError:
                    pass

    async def _send(self, batch: list[Waiting]) -> None:
        sending = Sending(self._delivery, batch)
        seconds: float | None = 0.0
        try:
            while seconds is not None:
                await asyncio.sleep(seconds)
                try:
                    result: Any = await self._client._send_once(sending.call())
                except RolltopError as error:
                    result = error
                except Exception as error:
                    log.exception("a batch cannot be sent")
                    result = RolltopError("failed", repr(error), status=400)
                seconds = sending.outcome(result)
        except asyncio.CancelledError:
            sending.abandon(is_raised=True)
            raise


class AsyncRolltop:
    """A service, for one event loop. What `Rolltop` says is so here too.

    Use it with `async with`, so that everything is sent: what was added when the loop ends without `close` is lost, and
    reported as failed. For a limit put `asyncio.timeout` around `flush` and `close`.
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
        self._http = httpx2.AsyncClient(**connecting(url, key, timeout))
        self.repeat_for, self._exit_timeout = repeat_for, exit_timeout
        self._is_closed = False
        self._ways: dict[str, Way[AsyncSender]] = {}
        self._events = self._way("/v1/events", "events")
        self._events.choose(batching, reports)

    def board(self, name: str, batching: Batching | None = None, reports: Reports | None = None) -> AsyncBoard:
        way = self._way(calls.of_board(name, "increments"), "increments")
        way.choose(batching, reports)
        return AsyncBoard(self, name, way)

    async def event(
        self,
        kind: str,
        fields: Mapping[str, object],
        *,
        at: str | datetime | None = None,
        id: str | None = None,
        retract: bool | None = None,
    ) -> bool:
        return await self._sender(self._events).add(calls.event(kind, fields, {"at": at, "id": id, "retract": retract}))

    async def flush(self) -> None:
        """Waits until everything that was added before is acknowledged, rejected or given up. Raises the first error of
        what was given up, if no function is told."""
        await asyncio.gather(*(sender.flush() for sender in self._senders()))
        self._raise_failure()

    async def close(self) -> None:
        """Sends everything that was added, and ends. Raises what `flush` raises."""
        self._is_closed = True
        for sender in self._senders():
            await sender.begin_to_close()
        for sender in self._senders():
            await sender.close()
        await self._http.aclose()
        self._raise_failure()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            await self.close()
            return
        try:
            async with asyncio.timeout(self._exit_timeout):
                await self.close()
        except TimeoutError:
            for sender in self._senders():
                await sender.abandon()
            await self._http.aclose()
        except RolltopError:
            # It is logged or reported. The error of the block is the one to raise, or its cancellation.
            log.debug("at the end of a block that raised", exc_info=True)

    async def boards(self) -> schema.BoardList:
        return await self._call(calls.boards())

    async def query(self, queries: Sequence[Mapping[str, object]]) -> schema.Answers:
        return await self._call(calls.query(queries))

    async def evaluate(self, rule: str, fields: Mapping[str, object]) -> schema.Evaluations:
        return await self._call(calls.evaluate(rule, fields))

    async def request(self, method: str, path: str, body: object = None, **params: object) -> Any:
        return await self._call(Call(method, path, params, body, method in ("GET", "PUT")))

    async def _call(self, call: Call[T]) -> T:
        return await self._repeated(call, lambda: self._send_once(call))

    async def _repeated(self, call: Call[Any], attempt_once: Callable[[], Awaitable[T]]) -> T:
        end = time.monotonic() + self.repeat_for
        for attempt in itertools.count():
            try:
                return await attempt_once()
            except RolltopError as error:
                seconds = next_pause(call, error, attempt, end)
            await asyncio.sleep(seconds)
        raise AssertionError("unreachable")

    async def _send_once(self, call: Call[T]) -> T:
        return cast(T, parsed(await self._answer(call, "application/json")))

    async def _export_piece(self, call: Call[Any]) -> tuple[Iterator[schema.RankingEntry], schema.ExportEnd]:
        async def once() -> tuple[Iterator[schema.RankingEntry], schema.ExportEnd]:
            return export_lines((await self._answer(call, "application/x-ndjson")).content)

        return await self._repeated(call, once)

    async def _answer(self, call: Call[Any], accept: str) -> httpx2.Response:
        content, headers = printed(call, accept)
        try:
            response = await self._http.request(
                call.method, call.path, params=call.query(), content=content, headers=headers
            )
        except httpx2.HTTPError as error:
            raise RolltopError.of_transport(error) from error
        return answer(response, accept)

    async def _stream(self, path: str, params: Mapping[str, str], last_id: str) -> AsyncIterator[str]:
        headers = stream_headers(last_id)
        try:
            async with self._http.stream(
                "GET", path, params=params, headers=headers, timeout=STREAM_TIMEOUT
            ) as response:
                if not response.is_success:
                    await response.aread()
                async for line in answer(response, "text/event-stream").aiter_lines():
                    yield line
        except httpx2.HTTPError as error:
            raise RolltopError.of_transport(error) from error

    def _way(self, path: str, name: str) -> Way[AsyncSender]:
        return self._ways.setdefault(path, Way(path, name))

    def _sender(self, way: Way[AsyncSender]) -> AsyncSender:
        if self._is_closed:
            raise RuntimeError("the client is closed")
        if way.sender is None:
            way.sender = AsyncSender(self, way.delivery, way.batching or Batching())
        return way.sender

    def _senders(self) -> list[AsyncSender]:
        return [way.sender for way in self._ways.values() if way.sender]

    def _raise_failure(self) -> None:
        failures = [way.delivery.take_failure() for way in self._ways.values()]
        if failure := next(filter(None, failures), None):
            raise failure


class AsyncBoard:
    """A board of a service, from `AsyncRolltop.board`. What `Board` says is so here too."""

    def __init__(self, client: AsyncRolltop, name: str, way: Way[AsyncSender]) -> None:
        self._client, self.name, self._way = client, name, way

    async def add(self, subject: str, amount: Amount | None = None, **more: Unpack[Item]) -> bool:
        return await self._client._sender(self._way).add(calls.item(subject, amount, more))

    async def add_now(
        self,
        subject: str,
        amount: Amount | None = None,
        *,
        period: str | None = None,
        **more: Unpack[Item],
    ) -> schema.Receipt:
        item = {"id": new_id(), **calls.item(subject, amount, more)}
        return await self._client._call(Call("POST", self._way.path, {"period": period}, print_item(item).encode()))

    @property
    def delivery(self) -> Delivery:
        return self._way.delivery

    @property
    def dropped(self) -> int:
        return self._way.sender.dropped if self._way.sender else 0

    async def top(self, **options: Unpack[InPage]) -> schema.Ranking:
        return await self._client._call(calls.top(self.name, options))

    async def lines(self, **options: Unpack[InPage]) -> AsyncIterator[schema.RankingEntry]:
        wanted = cast(InPage, {"limit": 1000, **options})
        while True:
            page = await self.top(**wanted)
            for line in page["items"]:
                yield line
            if page["next"] is None:
                return
            wanted["cursor"] = page["next"]
            wanted.pop("offset", None)

    async def export(self, **options: Unpack[Shown]) -> AsyncIterator[schema.RankingEntry]:
        wanted = cast(InPage, {"limit": PIECE, **options})
        while True:
            lines, end = await self._client._export_piece(calls.top(self.name, wanted))
            for line in lines:
                yield line
            if end["next"] is None:
                return
            wanted["cursor"] = end["next"]

    async def live(self, **options: Unpack[InLive]) -> AsyncGenerator[schema.Ranking, None]:
        waiting, has_more = deque[schema.Ranking](), asyncio.Event()
        path, params = calls.of_board(self.name, "stream"), calls.top(self.name, options).query()

        async def follow() -> None:
            live, attempt = LiveRanking(), 0
            while True:
                reader, pause_after = Lines(), None
                try:
                    # Nothing in this loop waits, so what ends it early ends the innermost of its generators first.
                    async for line in self._client._stream(path, params, live.last_id):
                        if event := reader.read(line):
                            attempt = 0
                            if ranking := live.take(*event):
                                if len(waiting) == WAITING_RANKINGS:
                                    waiting.pop()
                                waiting.append(ranking)
                                has_more.set()
                except RolltopError as error:
                    if not error.is_transient or error.code == "unexpected_answer":
                        raise
                    pause_after = error.retry_after
                await asyncio.sleep(pause(attempt, pause_after))
                attempt += 1

        # A caller that leaves its loop leaves this generator to be closed at some time. If it had another one open then,
        # the two would be closed at the same time, each by the other too, which asyncio refuses. So a task has those.
        following = asyncio.ensure_future(follow())
        following.add_done_callback(lambda _: has_more.set())
        try:
            while True:
                while waiting:
                    yield waiting.popleft()
                if following.done():
                    following.result()
                has_more.clear()
                await has_more.wait()
        finally:
            following.cancel()
            await asyncio.wait([following])
            if not following.cancelled():
                following.exception()  # or it is logged that nobody has seen it

    async def lookup(
        self, subjects: Iterable[str], *, ranks: bool = True, **options: Unpack[Shown]
    ) -> schema.LookupResult:
        return await self._client._call(calls.lookup(self.name, subjects, ranks, options))

    async def best(self, keys: Iterable[str], limit: int = 10, **options: Unpack[InKeys]) -> schema.Rankings:
        return await self._client._call(calls.best(self.name, keys, limit, options))

    async def subject(self, name: str, **options: Unpack[Shown]) -> schema.Standing:
        return await self._client._call(calls.subject(self.name, name, options))

    async def neighbors(self, name: str, radius: int = 5, **options: Unpack[Shown]) -> schema.Neighbors:
        return await self._client._call(calls.neighbors(self.name, name, radius, options))

    async def count(self, name: str, **options: Unpack[Over]) -> schema.WindowValue:
        return await self._client._call(calls.count(self.name, name, options))

    async def distribution(
        self,
        percentiles: Iterable[Amount] = (),
        scores: Iterable[Amount] = (),
        **options: Unpack[InPeriod],
    ) -> schema.Distribution:
        return await self._client._call(calls.distribution(self.name, percentiles, scores, options))

    async def periods(self, **options: Unpack[InPeriods]) -> schema.PeriodList:
        return await self._client._call(calls.periods(self.name, options))

    async def close_period(self, period: str | None = None) -> schema.ClosedPeriod:
        return await self._client._call(calls.close_period(self.name, period))

    async def tiers(self) -> schema.Tiers:
        return await self._client._call(calls.tiers(self.name))

    async def set_tiers(self, tiers: Iterable[Mapping[str, object]]) -> schema.Tiers:
        return await self._client._call(calls.set_tiers(self.name, tiers))

    async def keys(self, prefix: str = "", **options: Unpack[InRanking]) -> AsyncIterator[str]:
        async for page in self._pages(lambda cursor: calls.keys(self.name, prefix, cursor, options)):
            for item in page["items"]:
                yield item["by"]

    async def status(self) -> schema.BoardStatus:
        return await self._client._call(calls.status(self.name))

    async def define(self, definition: Mapping[str, object], *, dry_run: bool = False) -> schema.DefineAnswer:
        return await self._client._call(calls.define(self.name, definition, dry_run))

    async def undefine(self) -> schema.DefinedBoard:
        return await self._client._call(calls.undefine(self.name))

    async def remove(self, subject: str, *, by: str | None = None, all_keys: bool = False) -> schema.Removal:
        return await self._client._call(calls.remove(self.name, subject, by, all_keys))

    async def remove_values(self, values: Sequence[str], *, by: str | None = None) -> schema.ValueRemovalsReceipt:
        return await self._client._call(calls.remove_values(self.name, values, by))

    async def hide(self, subject: str, *, shadow: bool = False, by: str | None = None) -> schema.Hiding:
        return await self._client._call(calls.hide(self.name, subject, shadow, by))

    async def show(self, subject: str, *, by: str | None = None) -> schema.Hiding:
        return await self._client._call(calls.show(self.name, subject, by))

    async def freeze(self, subject: str, *, by: str | None = None) -> schema.Freezing:
        return await self._client._call(calls.freeze(self.name, subject, by))

    async def unfreeze(self, subject: str, *, by: str | None = None) -> schema.Freezing:
        return await self._client._call(calls.unfreeze(self.name, subject, by))

    async def hide_all(self, subjects: Iterable[Mapping[str, object]]) -> schema.ModerationReceipt:
        return await self._client._call(calls.moderate_all(self.name, "hidden", subjects))

    async def freeze_all(self, subjects: Iterable[Mapping[str, object]]) -> schema.ModerationReceipt:
        return await self._client._call(calls.moderate_all(self.name, "frozen", subjects))

    def hidden(self, prefix: str = "", *, by: str | None = None) -> AsyncIterator[schema.ModeratedSubject]:
        return self._moderated("hidden", prefix, by)

    def frozen(self, prefix: str = "", *, by: str | None = None) -> AsyncIterator[schema.ModeratedSubject]:
        return self._moderated("frozen", prefix, by)

    async def attributes(self, subject: str, *, by: str | None = None) -> dict[str, Any]:
        return (await self._client._call(calls.attributes(self.name, subject, by)))["attributes"]

    async def set_attributes(
        self, subject: str, attributes: Mapping[str, object], *, by: str | None = None
    ) -> dict[str, Any] | None:
        call = calls.change_attributes("PUT", self.name, subject, attributes, by)
        return (await self._client._call(call)).get("attributes")

    async def change_attributes(
        self, subject: str, attributes: Mapping[str, object], *, by: str | None = None
    ) -> dict[str, Any] | None:
        call = calls.change_attributes("PATCH", self.name, subject, attributes, by)
        return (await self._client._call(call)).get("attributes")

    async def remove_attributes(self, subject: str, *, by: str | None = None) -> None:
        await self._client._call(calls.remove_attributes(self.name, subject, by))

    async def describe_all(self, subjects: Iterable[Mapping[str, object]]) -> schema.ModerationReceipt:
        return await self._client._call(calls.describe_all(self.name, subjects))

    async def described(self, prefix: str = "") -> AsyncIterator[schema.DescribedSubject]:
        async for page in self._pages(lambda cursor: calls.described(self.name, prefix, cursor)):
            for item in page["items"]:
                yield item

    async def _moderated(self, what: str, prefix: str, by: str | None) -> AsyncIterator[schema.ModeratedSubject]:
        async for page in self._pages(lambda cursor: calls.moderated(self.name, what, prefix, by, cursor)):
            for item in page["items"]:
                yield item

    async def _pages(self, call: Callable[[str | None], Call[Page]]) -> AsyncIterator[Page]:
        cursor: str | None = None
        while True:
            page = await self._client._call(call(cursor))
            yield page
            cursor = page["next"]
            if cursor is None:
                return


def _describe() -> None:
    """Gives the calls that have no description of their own that of the same call of the other client."""
    for mine, other in ((AsyncRolltop, Rolltop), (AsyncBoard, Board)):
        for name, call in vars(mine).items():
            if not name.startswith("_") and not call.__doc__:
                call.__doc__ = getattr(other, name).__doc__


_describe()
