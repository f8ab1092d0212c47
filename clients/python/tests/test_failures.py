"""Tests of what goes wrong: answers that the service does not give, errors of the program, ends at a bad time."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import math
import pickle
import ssl
import sys
import threading
import time
import unittest
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from answers import Answers, answer, receipt
from service import Service

import rolltop
from rolltop import AsyncRolltop, Batching, Reports, Rolltop, RolltopError
from rolltop.queue import Queue

NOW = Batching(seconds=0)
LATER = Batching(seconds=60)
UNREACHABLE = "http://127.0.0.1:9"


def memory_full(index: int, **more: object) -> dict[str, Any]:
    return {"index": index, "code": "memory_full", "detail": "", **more}


class Answering(unittest.TestCase):
    """Of a server that answers as the test says."""

    def serve(self, reply: Any) -> Answers:
        server = Answers(reply)
        self.addCleanup(server.close)
        return server

    def test_an_item_that_is_too_large_takes_no_others_with_it(self) -> None:
        def reply(items: list[Any]) -> bytes:
            is_large = any(len(item["subject"]) > 1_000 for item in items)
            return answer(413, {"code": "too_large"}) if is_large else receipt(len(items))

        failed: list[str] = []
        client = Rolltop(self.serve(reply).url)
        reports = Reports(on_failed=lambda items, _: failed.extend(item["subject"] for item in items))
        board = client.board("b", LATER, reports)
        subjects = ["a", "b", "x" * 2_000, "c", "d", "y" * 2_000, "e"]
        for subject in subjects:
            board.add(subject)
        self.assertTrue(client.close(60))
        self.assertEqual(failed, ["x" * 2_000, "y" * 2_000])
        self.assertEqual((board.delivery.counted, board.delivery.failed), (5, 2))

    def test_an_event_that_two_boards_have_no_memory_for_is_sent_again_once(self) -> None:
        def reply(items: list[Any]) -> bytes:
            if len(server.requests) > 3:
                return receipt(len(items))
            return receipt(0, *(memory_full(i, board=board) for i in range(len(items)) for board in "ab"))

        server = self.serve(reply)
        client = Rolltop(server.url, batching=LATER)
        client.event("like", {})
        client.event("like", {})
        self.assertTrue(client.close(60))
        self.assertEqual([len(items) for items in server.requests], [2] * 4)

    def test_items_without_memory_are_given_up_too(self) -> None:
        failed: list[str] = []
        client = Rolltop(self.serve(lambda _: receipt(0, memory_full(0))).url)
        reports = Reports(on_failed=lambda _, error: failed.append(error.code), give_up_after=0.3)
        client.board("b", NOW, reports).add("a")
        self.assertTrue(client.close(60))
        self.assertEqual(failed, ["memory_full"])

    def test_all_that_are_rejected_are_reported_although_not_all_are_listed(self) -> None:
        def reply(items: list[Any]) -> bytes:
            rejected = [{"index": i, "code": "too_late", "detail": ""} for i in range(len(items))]
            return receipt(0, *rejected[:1_000], rejected_counts={"too_late": len(rejected)})

        told: list[str] = []
        client = Rolltop(self.serve(reply).url)
        reports = Reports(on_rejected=lambda item, *_: told.append(item["subject"]))
        board = client.board("b", Batching(items=3_000, seconds=60), reports)
        for i in range(3_000):
            board.add(f"s{i}")
        self.assertTrue(client.close(60))
        self.assertEqual(told, [f"s{i}" for i in range(3_000)])

    def test_errors_of_proxies_are_no_refusals(self) -> None:
        server = self.serve(
            lambda items: receipt(len(items)) if len(server.requests) > 1 else answer(522, b"", "text/html")
        )
        with Rolltop(server.url) as client:
            board = client.board("b", NOW)
            board.add("a")
        self.assertEqual((board.delivery.counted, board.delivery.failed), (1, 0))
        # A proxy may answer so although the service has the request.
        self.assertTrue(RolltopError("http_503", "", status=503).is_unknown)
        self.assertFalse(RolltopError("overloaded", "", status=503, problem={"code": "overloaded"}).is_unknown)

    def test_a_period_is_closed_again_only_by_its_name(self) -> None:
        def reply(_: list[Any]) -> bytes:
            return answer(200, {}) if len(server.requests) > 1 else answer(502, {})

        server = self.serve(reply)
        with Rolltop(server.url) as client:
            client.board("b").close_period("3")
        self.assertEqual(len(server.requests), 2)
        server = self.serve(reply)
        with Rolltop(server.url) as client, self.assertRaises(RolltopError):
            client.board("b").close_period()
        self.assertEqual(len(server.requests), 1)

    def test_an_export_that_ends_within_a_line_is_repeated(self) -> None:
        def reply(_: list[Any]) -> bytes:
            head = b"HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\nconnection: close\r\n\r\n"
            text = b'{"rank":1,"subject":"a","score":1}\n{"complete":true,"next":null,"problem":null}\n'
            return head + (text if len(server.requests) > 1 else text[:-20])

        server = self.serve(reply)
        with Rolltop(server.url) as client:
            self.assertEqual([line["subject"] for line in client.board("b").export()], ["a"])

    def test_a_line_whose_subject_was_removed_from_a_final_period_has_none(self) -> None:
        lines = [{"rank": rank, "subject": subject, "score": 9 - rank} for rank, subject in ((1, "a"), (2, None), (3, None))]

        def reply(_: list[Any]) -> bytes:
            if len(server.requests) > 1:
                texts = [*lines, {"complete": True, "next": None, "problem": None}]
                return answer(200, "".join(f"{json.dumps(text)}\n" for text in texts).encode(), "application/x-ndjson")
            return answer(200, {"items": lines, "next": None})

        server = self.serve(reply)
        with Rolltop(server.url) as client:
            page = client.board("b").top(period="2026-10")["items"]
            self.assertEqual([line["subject"] for line in page], ["a", None, None])
            self.assertEqual(list(client.board("b").export(period="2026-10")), lines)


class Ends(unittest.TestCase):
    """Ends of clients and of what they call."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.service = Service()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.service.close()

    def test_the_error_of_a_block_is_not_replaced(self) -> None:
        with self.assertLogs("rolltop", "ERROR"), self.assertRaises(KeyboardInterrupt):
            with Rolltop(self.service.url) as client:
                client.board("does-not-exist").add("a")
                raise KeyboardInterrupt

    def test_the_cancellation_of_a_block_is_not_replaced(self) -> None:
        async def block() -> None:
            async with AsyncRolltop(self.service.url) as client:
                await client.board("does-not-exist").add("a")
                await asyncio.sleep(600)

        async def cancelled() -> bool:
            task = asyncio.create_task(block())
            await asyncio.sleep(0.1)
            task.cancel()
            await asyncio.wait([task])
            return task.cancelled()

        with self.assertLogs("rolltop", "ERROR"):
            self.assertTrue(asyncio.run(cancelled()))

    def test_what_is_given_up_at_the_end_is_reported(self) -> None:
        client, failed = Rolltop(UNREACHABLE), list[tuple[str, str]]()
        reports = Reports(on_failed=lambda items, error: failed.extend((item["subject"], error.code) for item in items))
        board = client.board("b", Batching(items=1, seconds=0), reports)
        for subject in "abc":
            board.add(subject)
        self.assertFalse(client.close(0.3))
        self.assertEqual(sorted(failed), [(subject, "abandoned") for subject in "abc"])
        self.assertFalse(client.close(), "it was sent after all")

    def test_what_waits_behind_a_service_that_does_not_answer_is_reported(self) -> None:
        ended = threading.Event()
        self.addCleanup(ended.set)

        def reply(_: list[Any]) -> bytes:
            ended.wait(60)
            return answer(503, {"code": "overloaded"})

        server = Answers(reply)
        self.addCleanup(server.close)
        client, failed = Rolltop(server.url, timeout=60.0), list[str]()
        reports = Reports(on_failed=lambda items, _: failed.extend(item["subject"] for item in items))
        board = client.board("b", Batching(items=1, seconds=0), reports)
        for subject in "abc":
            board.add(subject)
        while not server.requests:
            time.sleep(0.01)
        with self.assertLogs("rolltop", "ERROR") as logs:
            self.assertFalse(client.close(0))
        self.assertEqual((failed, len(logs.output)), (["b", "c"], 1))

    def test_what_is_lost_with_the_task_of_a_client_is_reported(self) -> None:
        async def cancelled() -> None:
            client = AsyncRolltop(UNREACHABLE)
            board = client.board("b", Batching(items=1, seconds=0))
            await board.add("a")
            await board.add("b")
            await asyncio.sleep(0.1)
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
            async with asyncio.timeout(60):
                with self.assertRaises(RolltopError) as raised:
                    await client.flush()
                self.assertEqual(raised.exception.code, "abandoned")
                with self.assertRaises(RuntimeError):
                    await board.add("c")
                await client.close()
            self.assertEqual(board.delivery.failed, 2)

        with self.assertLogs("rolltop", "ERROR"):
            asyncio.run(cancelled())

    def test_a_client_whose_loop_has_ended_says_so(self) -> None:
        client = AsyncRolltop(self.service.url)
        board = client.board("hot-posts", LATER)

        async def first() -> None:
            await board.add("lost")

        async def second() -> None:
            with self.assertRaises(RuntimeError):
                await board.add("a")
            with self.assertRaises(RolltopError):
                await client.close()

        with self.assertLogs("rolltop", "ERROR"):
            asyncio.run(first())
        asyncio.run(second())

    def test_waiting_may_have_no_end(self) -> None:
        client = Rolltop(self.service.url, exit_timeout=math.inf)
        client.board("hot-posts").add("a")
        self.assertTrue(client.flush(math.inf))
        self.assertTrue(client.close(math.inf))

    def test_a_report_that_ends_its_thread_does_not(self) -> None:
        client, told = Rolltop(self.service.url), list[str]()

        def on_failed(items: Any, _: RolltopError) -> None:
            told.append(items[0]["subject"])
            sys.exit(1)

        board = client.board("does-not-exist", NOW, Reports(on_failed=on_failed))
        for subject in "ab":
            board.add(subject)
            self.assertTrue(client.flush(60))
        self.assertEqual(told, ["a", "b"])

    def test_a_log_that_fails_does_not_end_the_sender(self) -> None:
        def fail(_: logging.LogRecord) -> bool:
            raise ValueError("a filter of the log fails")

        log, seen = logging.getLogger("rolltop"), list[Any]()
        hook, threading.excepthook = threading.excepthook, seen.append
        log.addFilter(fail)
        try:
            client = Rolltop(self.service.url)
            board = client.board("does-not-exist", NOW)
            for _ in range(2):
                board.add("a")
                self.assertTrue(client.flush(60))
        finally:
            log.removeFilter(fail)
            threading.excepthook = hook
        self.assertEqual((board.delivery.failed, len(seen)), (2, 2))

    def test_a_report_that_closes_its_client_is_refused(self) -> None:
        client, told = Rolltop(self.service.url), threading.Event()

        def on_failed(*_: object) -> None:
            try:
                client.close()
            except RuntimeError:
                told.set()

        client.board("does-not-exist", NOW, Reports(on_failed=on_failed)).add("a")
        self.assertTrue(told.wait(60))
        self.assertTrue(client.board("hot-posts").add("a"))
        self.assertTrue(client.close(60))


class Values(unittest.TestCase):
    """What is given to a client. Nothing is sent."""

    def test_a_client_that_could_never_send_is_refused(self) -> None:
        for url in ("127.0.0.1:8080", "localhost:8080", "ftp://localhost", "http://", ""):
            with self.assertRaises(ValueError):
                Rolltop(url)
        for key in ("rt_x\n", "rt x", "rt_é"):
            with self.assertRaises(ValueError):
                AsyncRolltop("http://127.0.0.1:8080", key)

    def test_a_batch_has_at_most_what_may_wait(self) -> None:
        self.assertEqual(rolltop.Batching(max_items=3).items, 3)
        for wrong in ({"items": 0}, {"max_items": 0}):
            with self.assertRaises(ValueError):
                rolltop.Batching(**wrong)  # type: ignore[arg-type]

    def test_secrets_that_no_signing_key_has_are_refused(self) -> None:
        for secret in ("", "s" * 31):
            with self.assertRaisesRegex(ValueError, "32"):
                rolltop.sign_token({"scopes": ["view"]}, secret=secret, kid="00000000000000a1")

    def test_a_fork_reads_no_certificates_again(self) -> None:
        def contexts() -> int:
            return sum(isinstance(found, ssl.SSLContext) for found in gc.get_objects())

        client = Rolltop(UNREACHABLE)
        before = contexts()
        client._begin_after_fork()
        self.assertEqual(contexts(), before)

    def test_errors_are_pickled(self) -> None:
        error = RolltopError("overloaded", "wait", status=503, request_id="r", retry_after=2.0, problem={"a": 1})
        again = pickle.loads(pickle.dumps(error))
        self.assertEqual(vars(again), vars(error))
        self.assertEqual(str(again), "overloaded: wait (request r)")

    def sent(self, **item: Any) -> dict[str, Any]:
        """Returns an item as it would be sent."""
        client = Rolltop(UNREACHABLE)
        client.board("b", LATER).add(**item)
        sender = client._ways["/v1/boards/b/increments"].sender
        assert sender is not None
        text = sender._queue._waiting[0].text
        with self.assertLogs("rolltop", "ERROR"):
            client.close(0)
        sent: dict[str, Any] = json.loads(text)
        return sent

    def test_numbers_of_other_types_are_taken(self) -> None:
        class Real(float):
            def __repr__(self) -> str:
                return f"Real({float(self)})"

        class Whole:
            def __index__(self) -> int:
                return 7

        self.assertEqual(self.sent(subject="a", amount=Real(0.1))["amount"], "0.1")
        self.assertEqual(self.sent(subject="a", amount=Whole())["amount"], 7)
        with self.assertRaisesRegex(TypeError, "amount"):
            self.sent(subject="a", amount=True)

    def test_a_time_may_be_one_of_python_with_a_zone(self) -> None:
        zone = timezone(timedelta(hours=1))
        item = self.sent(subject="a", at=datetime(2026, 1, 2, 11, 7, tzinfo=zone))
        self.assertEqual(item["at"], "2026-01-02T11:07:00+01:00")
        with self.assertRaisesRegex(ValueError, "at: .*time zone"):
            self.sent(subject="a", at=datetime(2026, 1, 2, 11, 7))

    def test_an_argument_that_there_is_not_is_refused(self) -> None:
        with self.assertRaisesRegex(TypeError, "'amounts'"):
            self.sent(subject="a", amounts=5)

    def test_numbers_with_large_exponents_take_no_room_and_are_not_added_up(self) -> None:
        self.assertEqual(self.sent(subject="a", amount="1e999999999")["amount"], "1E+999999999")
        queue = Queue(Batching(coalesces=True))
        queue.add({"subject": "a", "amount": Decimal("1e999")}, 0.0)
        self.assertFalse(queue.combine({"subject": "a", "amount": Decimal("0.1")}), "it would be rounded")
        queue.add({"subject": "b", "amount": Decimal("0.1")}, 0.0)
        self.assertTrue(queue.combine({"subject": "b", "amount": Decimal("0.2")}))

    def test_an_id_of_none_is_none(self) -> None:
        item = self.sent(subject="a", id=None, by=None)
        self.assertTrue(item["id"])
        self.assertNotIn("by", item)

    def test_a_sum_that_cannot_be_printed_is_refused(self) -> None:
        queue = Queue(Batching(coalesces=True))
        item = {"subject": "a", "amount": 9 * 10**4_299}
        queue.add(dict(item), 0.0)
        with self.assertRaises(ValueError):
            queue.combine(dict(item))
        with self.assertRaises(ValueError):
            queue.combine({"subject": "a", "amount": Decimal("NaN")})
        self.assertTrue(queue.combine({"subject": "a"}))

    def test_what_a_batch_leaves_waits_no_longer_than_the_first(self) -> None:
        queue = Queue(Batching(items=2, seconds=10))
        for subject in "abc":
            queue.add({"subject": subject}, 0.0)
        batch = queue.next(5.0)
        self.assertEqual(len(batch) if isinstance(batch, list) else batch, 2)
        self.assertEqual(queue.next(6.0), 4.0)
        rest = queue.next(10.0)
        self.assertEqual(len(rest) if isinstance(rest, list) else rest, 1)


class Reference(unittest.TestCase):
    def test_everything_public_is_described(self) -> None:
        missing = []
        for name in rolltop.__all__:
            thing = getattr(rolltop, name)
            members = vars(thing).items() if isinstance(thing, type) else []
            own = [(f"{name}.{part}", value) for part, value in members if not part.startswith("_")]
            described = [
                (name, thing),
                *((part, value) for part, value in own if callable(value) or isinstance(value, property)),
            ]
            missing += [part for part, value in described if not value.__doc__]
        self.assertEqual(missing, [])


class AsyncTurns(unittest.IsolatedAsyncioTestCase):
    """Of one event loop, which `add` shares with what sends."""

    async def asyncSetUp(self) -> None:
        self.server = Answers(lambda items: receipt(len(items)))
        self.addCleanup(self.server.close)

    async def test_items_are_sent_beside_those_that_are_dropped_or_added_up(self) -> None:
        for batching in (
            Batching(max_items=100, items=100, drops=True),
            Batching(coalesces=True, seconds=0.01),
        ):
            async with AsyncRolltop(self.server.url) as client:
                board, end = client.board("b", batching), time.monotonic() + 60
                while board.delivery.counted == 0:
                    await board.add("a")
                    self.assertLess(time.monotonic(), end)

    async def test_an_item_whose_call_is_cancelled_is_not_added(self) -> None:
        async with AsyncRolltop(self.server.url) as client:
            board, added = client.board("b"), 0
            for _ in range(200):
                task = asyncio.create_task(board.add("a"))
                await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
                added += not task.cancelled()
        self.assertLess(added, 200)
        self.assertEqual(board.delivery.counted, added)

    async def test_live_rankings_keep_no_items_from_being_sent(self) -> None:
        service = Service()
        self.addCleanup(service.close)
        async with AsyncRolltop(service.url, timeout=60.0) as client:
            board = client.board("hot-posts", NOW)
            rankings = [board.live() for _ in range(110)]
            for ranking in rankings:
                await anext(ranking)
            await board.add("a")
            async with asyncio.timeout(60):
                await client.flush()
            for ranking in rankings:
                await ranking.aclose()
            self.assertEqual((await board.subject("a"))["score"], 1)


if __name__ == "__main__":
    unittest.main()
