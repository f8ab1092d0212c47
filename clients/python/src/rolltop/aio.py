"""The client for programs with asyncio. It does what `Rolltop` does; what is said there is not repeated here."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from decimal import Decimal
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack, cast

import httpx2

from . import calls, schema
from .calls import Call, InPage, InRanking, Item, Over
from .client import PIECE
from .delivery import Delivery, Reports
from .errors import RolltopError
from .live import Lines, LiveRanking, export_lines
from .numbers import parse, print_json
from .pauses import pause
from .queue import Batching, Queue, new_id

T = TypeVar("T")


class AsyncSender:
    """Sends what is put into a queue, batch by batch, in a task of its own."""

    def __init__(self, client: AsyncRolltop, delivery: Delivery, batching: Batching) -> None:
        self._client, self.delivery, self.batching = client, delivery, batching
        self._queue = Queue(batching)
        self._changed = asyncio.Condition()
        self._flushing, self._closing = 0, False
        self._since = 0.0
        self._task = asyncio.create_task(self._run(), name="rolltop-sender")

    async def add(self, item: dict[str, Any]) -> bool:
        async with self._changed:
            if self._closing:
                raise RuntimeError("the client is closed")
            if self._queue.combine(item):
                return True
            if self.batching.drops and self._queue.is_full():
                self._queue.dropped += 1
                return False
            await self._changed.wait_for(lambda: self._closing or not self._queue.is_full())
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

    async def flush(self) -> None:
        async with self._changed:
            self._flushing += 1
            self._changed.notify_all()
            before = self._queue.added
            try:
                await self._changed.wait_for(lambda: self._queue.done >= before)
            finally:
                self._flushing -= 1
        self.delivery.raise_failure()

    async def close(self) -> None:
        async with self._changed:
            self._closing = True
            self._changed.notify_all()
        await self._task
        self.delivery.raise_failure()

    async def _next(self) -> list[dict[str, Any]] | None:
        async with self._changed:
            while True:
                if len(self._queue) > 0:
                    left = self._since + self.batching.seconds - time.monotonic()
                    if left <= 0 or self._queue.is_due() or self._flushing or self._closing:
                        batch = self._queue.take()
                        self._since = time.monotonic()
                        self._changed.notify_all()
                        return batch
                    try:
                        async with asyncio.timeout(left):
                            await self._changed.wait()
                    except TimeoutError:
                        pass
                elif self._closing:
                    return None
                else:
                    await self._changed.wait()

    async def _run(self) -> None:
        while (batch := await self._next()) is not None:
            await self._send(batch)
            async with self._changed:
                self._queue.done += len(batch)
                self._changed.notify_all()

    async def _send(self, batch: list[dict[str, Any]]) -> None:
        call, began, attempt = self.delivery.call(batch), time.monotonic(), 0
        while True:
            try:
                self.delivery.answered(batch, await self._client.send_once(call))
                return
            except RolltopError as error:
                seconds = self.delivery.next_pause(attempt, began, error)
                if seconds is None:
                    self.delivery.gave_up(batch, error)
                    return
            await asyncio.sleep(seconds)
            attempt += 1


class AsyncRolltop:
    """A service, for one event loop. Use it with `async with`, so that everything is sent: what was added when the loop
    ends without `close` is lost."""

    def __init__(
        self, url: str = "http://127.0.0.1:8080", key: str | None = None, *, timeout: float = 10.0, retries: int = 4
    ) -> None:
        headers = {"authorization": f"Bearer {key}"} if key else {}
        self._http = httpx2.AsyncClient(base_url=url, headers=headers, timeout=timeout)
        self._retries = retries
        self._senders: dict[str, AsyncSender] = {}

    def board(self, name: str, batching: Batching | None = None, reports: Reports | None = None) -> AsyncBoard:
        return AsyncBoard(self, name, batching, reports)

    async def event(
        self,
        kind: str,
        fields: Mapping[str, object],
        *,
        at: str | None = None,
        id: str | None = None,
        batching: Batching | None = None,
        reports: Reports | None = None,
    ) -> bool:
        event = calls.event(kind, fields, at, id)
        return await self.sender("/v1/events", "events", batching, reports).add(event)

    async def flush(self) -> None:
        for sender in list(self._senders.values()):
            await sender.flush()

    async def close(self) -> None:
        try:
            for sender in list(self._senders.values()):
                await sender.close()
        finally:
            await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def boards(self) -> schema.BoardList:
        return await self.call(calls.boards())

    async def query(self, queries: Sequence[Mapping[str, object]]) -> schema.Answers:
        return await self.call(calls.query(queries))

    async def evaluate(self, rule: str, fields: Mapping[str, object]) -> schema.Evaluations:
        return await self.call(calls.evaluate(rule, fields))

    async def request(self, method: str, path: str, body: object = None, **params: object) -> Any:
        return await self.call(Call(method, path, params, body, method != "POST"))

    async def call(self, call: Call[T]) -> T:
        for attempt in range(self._retries if call.is_repeatable else 0):
            try:
                return await self.send_once(call)
            except RolltopError as error:
                if not error.is_transient:
                    raise
                seconds = pause(attempt, error.retry_after)
            await asyncio.sleep(seconds)
        return await self.send_once(call)

    async def send_once(self, call: Call[T]) -> T:
        return cast(T, parse((await self._answer(call, {})).content))

    async def piece(self, call: Call[T]) -> bytes:
        return (await self._answer(call, {"accept": "application/x-ndjson"})).content

    async def _answer(self, call: Call[T], headers: dict[str, str]) -> httpx2.Response:
        content = None if call.body is None else print_json(call.body)
        if content is not None:
            headers = {**headers, "content-type": "application/json"}
        try:
            response = await self._http.request(
                call.method, call.path, params=call.query(), content=content, headers=headers
            )
        except httpx2.HTTPError as error:
            raise RolltopError.of_transport(error) from error
        if not response.is_success:
            raise RolltopError.of_answer(response)
        return response

    async def stream(self, path: str, params: Mapping[str, str], last_id: str) -> AsyncIterator[str]:
        headers = {"accept": "text/event-stream", **({"last-event-id": last_id} if last_id else {})}
        timeout = httpx2.Timeout(10.0, read=40.0)
        try:
            async with self._http.stream("GET", path, params=params, headers=headers, timeout=timeout) as response:
                if not response.is_success:
                    await response.aread()
                    raise RolltopError.of_answer(response)
                async for line in response.aiter_lines():
                    yield line
        except httpx2.HTTPError as error:
            raise RolltopError.of_transport(error) from error

    def sender(self, path: str, name: str, batching: Batching | None, reports: Reports | None) -> AsyncSender:
        sender = self._senders.get(path)
        if sender is None:
            delivery = Delivery(path, name, reports or Reports())
            sender = self._senders[path] = AsyncSender(self, delivery, batching or Batching())
        sender.delivery.check(sender.batching, batching, reports)
        return sender


class AsyncBoard:
    """A board of a service."""

    def __init__(self, client: AsyncRolltop, name: str, batching: Batching | None, reports: Reports | None) -> None:
        self._client, self.name = client, name
        self._batching, self._reports = batching, reports

    async def add(self, subject: str, amount: int | Decimal | float | None = None, **more: Unpack[Item]) -> bool:
        return await self._sender().add(calls.item(subject, amount, more))

    async def add_now(
        self, subject: str, amount: int | Decimal | float | None = None, **more: Unpack[Item]
    ) -> schema.Receipt:
        item = {"id": new_id(), **calls.item(subject, amount, more)}
        return await self._client.call(Call("POST", calls.of_board(self.name, "increments"), body=item))

    def delivery(self) -> Delivery:
        return self._sender().delivery

    @property
    def dropped(self) -> int:
        return self._sender().dropped

    async def top(self, **options: Unpack[InPage]) -> schema.Ranking:
        return await self._client.call(calls.top(self.name, options))

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

    async def export(self, **options: Unpack[InRanking]) -> AsyncIterator[schema.RankingEntry]:
        wanted = cast(InPage, {"limit": PIECE, **options})
        while True:
            lines, end = await self._piece(wanted)
            for line in lines:
                yield line
            if end["next"] is None:
                return
            wanted["cursor"] = end["next"]

    async def _piece(self, wanted: InPage) -> tuple[Iterable[schema.RankingEntry], schema.ExportEnd]:
        attempt = 0
        while True:
            try:
                return export_lines(await self._client.piece(calls.top(self.name, wanted)))
            except RolltopError as error:
                if not error.is_transient or attempt >= 4:
                    raise
                seconds = pause(attempt, error.retry_after)
            await asyncio.sleep(seconds)
            attempt += 1

    async def live(self, **options: Unpack[InPage]) -> AsyncIterator[schema.Ranking]:
        live, attempt = LiveRanking(), 0
        path, params = calls.of_board(self.name, "stream"), calls.top(self.name, options).query()
        while True:
            reader, pause_after = Lines(), None
            try:
                async for line in self._client.stream(path, params, live.last_id):
                    if event := reader.read(line):
                        attempt = 0
                        if ranking := live.take(*event):
                            yield ranking
            except RolltopError as error:
                if not error.is_transient:
                    raise
                pause_after = error.retry_after
            await asyncio.sleep(pause(attempt, pause_after))
            attempt += 1

    async def lookup(
        self, subjects: Iterable[str], *, ranks: bool = True, **options: Unpack[InRanking]
    ) -> schema.LookupResult:
        return await self._client.call(calls.lookup(self.name, subjects, ranks, options))

    async def best(self, keys: Iterable[str], limit: int = 10, **options: Unpack[InRanking]) -> schema.Rankings:
        return await self._client.call(calls.best(self.name, keys, limit, options))

    async def subject(self, name: str, **options: Unpack[InRanking]) -> schema.Standing:
        return await self._client.call(calls.subject(self.name, name, options))

    async def neighbors(self, name: str, radius: int = 5, **options: Unpack[InRanking]) -> schema.Neighbors:
        return await self._client.call(calls.neighbors(self.name, name, radius, options))

    async def count(self, name: str, **options: Unpack[Over]) -> schema.WindowValue:
        return await self._client.call(calls.count(self.name, name, options))

    async def keys(self, prefix: str = "", **options: Unpack[InRanking]) -> AsyncIterator[str]:
        cursor: str | None = None
        while True:
            page = await self._client.call(calls.keys(self.name, prefix, cursor, options))
            for item in page["items"]:
                yield item["by"]
            cursor = page["next"]
            if cursor is None:
                return

    async def status(self) -> schema.BoardStatus:
        return await self._client.call(calls.status(self.name))

    async def define(self, definition: Mapping[str, object], *, dry_run: bool = False) -> schema.DefineAnswer:
        return await self._client.call(calls.define(self.name, definition, dry_run))

    async def undefine(self) -> schema.DefinedBoard:
        return await self._client.call(calls.undefine(self.name))

    async def remove(self, subject: str, *, by: str | None = None, all_keys: bool = False) -> schema.Removal:
        return await self._client.call(calls.remove(self.name, subject, by, all_keys))

    def _sender(self) -> AsyncSender:
        path = calls.of_board(self.name, "increments")
        return self._client.sender(path, "increments", self._batching, self._reports)
