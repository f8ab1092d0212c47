"""Tests of the installed package against the real service."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
import unittest
from collections.abc import Callable
from contextlib import closing
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

from answers import Answers, answer
from service import Redis, Service

from rolltop import Batching, Reports, Rolltop, RolltopError

REDIS = os.environ.get("ROLLTOP_TEST_REDIS") or shutil.which("redis-server")
SOON = Batching(seconds=0.05)


class Calls(unittest.TestCase):
    """Every call, on the embedded store."""

    store = "embedded"
    redis: Redis | None = None

    @classmethod
    def setUpClass(cls) -> None:
        cls.service = Service(cls.store)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.service.close()

    def setUp(self) -> None:
        self.client = Rolltop(self.service.url)
        self.addCleanup(self.client.close)

    def wait_until(self, happens: Callable[[], bool]) -> None:
        end = time.monotonic() + 60
        while not happens():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)

    def board(self, metric: str = "COUNT(24h, like, post_id)", batching: Batching = SOON, **more: object) -> Any:
        name = re.sub("[^a-z0-9-]", "-", f"{self.store[:5]}-{self.id().rsplit('.')[-1]}".lower())
        board = self.client.board(name, batching)
        board.define({"metric": metric, "slot": "1h", **more})
        return board

    def test_a_second_key_orders_equal_scores(self) -> None:
        board = self.board("SUM(24h, answer, points, player)", tie_break={"most": 1000, "order": "asc"})
        board.add("ann", 10, tie_break=12)
        board.add("bob", 10, tie_break=10)
        self.client.flush()
        self.assertEqual([(line["subject"], line["tie"]) for line in board.top()["items"]], [("bob", 10), ("ann", 12)])
        for wrong in (1.5, "1", True):
            with self.assertRaisesRegex(TypeError, "tie_break must be a whole number"):
                board.add("ann", 10, tie_break=wrong)

    def test_items_are_counted_in_the_background(self) -> None:
        board = self.board()
        for _ in range(3):
            self.assertTrue(board.add("a"))
        board.add("b", 5)
        board.add("c", 4, id="mine")
        board.add("c", 4, id="mine")
        self.assertTrue(self.client.flush(60))
        lines = [(line["rank"], line["subject"], line["score"]) for line in board.top(limit=2)["items"]]
        self.assertEqual(lines, [(1, "b", 5), (2, "c", 4)])
        delivery = board.delivery
        self.assertEqual((delivery.counted, delivery.duplicates, delivery.rejected), (5, 1, 0))

    def test_a_batch_is_sent_without_flush(self) -> None:
        board = self.board()
        board.add("a")
        self.wait_until(lambda: bool(board.top()["items"]))
        self.assertEqual(board.top()["items"][0]["score"], 1)

    def test_objects_of_one_board_share_what_waits(self) -> None:
        board = self.board()
        board.add("a")
        self.client.board(board.name).add("a")
        with self.assertRaises(ValueError):
            self.client.board(board.name, Batching(seconds=5))
        self.client.flush(60)
        self.assertEqual(board.subject("a")["score"], 2)

    def test_flush_waits_for_what_was_added_before_only(self) -> None:
        board, goes_on = self.board(), threading.Event()

        def add() -> None:
            while not goes_on.is_set():
                board.add("later")

        board.add("before")
        adding = threading.Thread(target=add)
        adding.start()
        self.assertTrue(self.client.flush(60))
        self.assertEqual(board.subject("before")["score"], 1)
        goes_on.set()
        adding.join()

    def test_amounts_for_equal_subjects_are_added_up(self) -> None:
        board = self.board("SUM(24h, sale, amount, shop)", Batching(coalesces=True, seconds=60), decimals=2)
        for amount in (1, Decimal("0.10"), 0.2, Decimal("0.05")):
            board.add("a", amount)
        board.add("a", 7, id="one")
        board.add("b", 2)
        self.client.flush(60)
        self.assertEqual(board.subject("a")["score"], Decimal("8.35"))
        self.assertEqual(board.delivery.counted, 3)

    def test_rejected_items_are_reported(self) -> None:
        told: list[tuple[str, str]] = []
        name = self.board().name
        client = Rolltop(self.service.url)
        board = client.board(
            name, SOON, Reports(on_rejected=lambda item, code, _: told.append((item["subject"], code)))
        )
        board.add("late", at="2020-01-01T00:00:00Z")
        board.add("fine")
        client.close()
        self.assertEqual(told, [("late", "too_late")])

    def test_a_refused_batch_is_raised_by_flush_and_close(self) -> None:
        client = Rolltop(self.service.url)
        client.board("does-not-exist", SOON).add("a")
        with self.assertLogs("rolltop", "ERROR"), self.assertRaises(RolltopError) as raised:
            client.flush(60)
        self.assertEqual((raised.exception.code, raised.exception.status), ("unknown_board", 404))
        self.assertTrue(raised.exception.request_id)
        client.close()

    def test_too_much_waits_or_is_dropped(self) -> None:
        added = threading.Event()

        def reply(_: list[Any]) -> bytes:
            added.wait(60)
            return answer(503, {"code": "overloaded"})

        server = Answers(reply)
        self.addCleanup(server.close)
        client = Rolltop(server.url, timeout=60.0)
        board = client.board("b", Batching(max_items=10, items=5, drops=True), Reports(give_up_after=0))
        kept = sum(board.add(f"s{i}") for i in range(1_000))
        self.assertTrue(10 <= kept <= 15, kept)
        self.assertEqual(board.dropped, 1_000 - kept)
        added.set()
        with self.assertLogs("rolltop", "ERROR"), self.assertRaises(RolltopError) as raised:
            client.close(60)
        self.assertEqual((raised.exception.code, board.delivery.failed), ("overloaded", kept))

    def test_events_count_on_every_board(self) -> None:
        before = self.client.board("hot-posts").count("event-post")["value"]
        self.client.event("like", {"post_id": "event-post", "community": "rust"})
        self.client.flush(60)
        self.assertEqual(self.client.board("hot-posts").count("event-post")["value"], before + 1)
        self.assertEqual(self.client.board("communities").subject("event-post", by="rust")["score"], before + 1)

    def test_names_of_dots_are_no_folders(self) -> None:
        board = self.board()
        for name in (".", "..", "..."):
            board.add_now(name, 2)
            self.assertEqual(board.subject(name)["score"], 2)
            self.assertEqual(board.count(name)["value"], 2)
        board.remove("..")
        self.assertEqual([line["subject"] for line in board.top()["items"]], ["...", "."])
        with self.assertRaises(ValueError):
            board.remove("")
        with self.assertRaises(ValueError):
            self.client.board("")

    def test_values_are_removed_from_all_subjects(self) -> None:
        board = self.board("COUNT_DISTINCT(24h, like, post, user)")
        for post in ("p", "q"):
            for user in ("ann", "bob"):
                board.add_now(post, value=user)
        removed = board.remove_values(["ann", "nobody"])
        self.assertEqual((removed["values"], removed["final_periods"], removed["approximate"]), (2, 0, False))
        self.assertEqual([line["score"] for line in board.top()["items"]], [1, 1])
        with self.assertRaises(RolltopError) as raised:
            self.client.board("hot-posts").remove_values(["ann"])
        self.assertEqual(raised.exception.code, "no_values")

    def test_what_is_no_item_is_refused_at_once(self) -> None:
        board = self.board("SUM(24h, sale, amount, shop)")
        board.add("fine")
        for wrong in (Decimal("NaN"), Decimal("Infinity"), float("nan"), object()):
            with self.assertRaises((TypeError, ValueError)):
                board.add("a", wrong)
        with self.assertRaises(ValueError):
            board.add("\ud800")
        with self.assertRaises(TypeError):
            board.add("a", at=time)
        with self.assertRaises(ValueError):
            board.add("a", 1, value=2)
        board.add("fine")
        self.client.flush(60)
        self.assertEqual([(line["subject"], line["score"]) for line in board.top()["items"]], [("fine", 2)])

    def test_a_failure_keeps_nothing_else_from_being_sent(self) -> None:
        name = self.board().name
        client = Rolltop(self.service.url)
        client.board("does-not-exist", SOON).add("a")
        client.board(name, Batching(seconds=60)).add("a")
        with self.assertLogs("rolltop", "ERROR"), self.assertRaises(RolltopError):
            client.close(60)
        self.assertEqual(self.client.board(name).subject("a")["score"], 1)
        with self.assertRaises(RuntimeError):
            client.board(name).add("a")
        with self.assertRaises(RuntimeError):
            client.board("never-used").add("a")

    def test_a_batch_that_is_too_large_is_divided(self) -> None:
        fields = {"post_id": "large", "community": "c", "text": "x" * 60_000}
        before = self.client.board("hot-posts").count("large")["value"]
        for _ in range(200):
            self.client.event("like", fields)
        self.assertTrue(self.client.flush(60))
        self.assertEqual(self.client.board("hot-posts").count("large")["value"], before + 200)

    def test_sums_are_exact_in_any_context(self) -> None:
        board = self.board("SUM(24h, sale, amount, shop)", decimals=2)
        client = Rolltop(self.service.url)
        sums = client.board(board.name, Batching(coalesces=True, seconds=60))
        with localcontext() as context:
            context.prec = 3
            sums.add("a", Decimal("123456.78"))
            sums.add("a", Decimal("0.11"))
        client.close(60)
        self.assertEqual(board.subject("a")["score"], Decimal("123456.89"))

    def test_a_report_may_not_wait_for_its_sender(self) -> None:
        seen: list[str] = []

        def on_failed(items: Any, error: RolltopError) -> None:
            try:
                client.flush()
            except RuntimeError as refused:
                seen.append(str(refused))

        client = Rolltop(self.service.url)
        client.board("does-not-exist", SOON, Reports(on_failed=on_failed)).add("a")
        client.close(60)
        self.assertIn("must not wait", seen[0])

    def test_the_end_of_a_program_waits_a_while_only(self) -> None:
        program = (
            "from rolltop import Rolltop\n"
            "clients = [Rolltop('http://127.0.0.1:9', exit_timeout=1) for _ in range(3)]\n"
            "for client in clients:\n"
            "    for board in 'ab': client.board(board).add('x')\n"
            "print('end')\n"
        )
        began = time.monotonic()
        ended = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60, check=True)
        self.assertEqual(ended.stdout, b"end\n")
        self.assertLess(time.monotonic() - began, 30)

    def test_a_page_of_a_proxy_is_no_answer(self) -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\ncontent-length: 4\r\n\r\n"
        answers = [head + b"<p/>"]
        with socket.create_server(("127.0.0.1", 0)) as listener:

            def serve() -> None:
                while answers:
                    client, _ = listener.accept()
                    with client:
                        client.recv(65536)
                        client.sendall(answers[0])

            threading.Thread(target=serve, daemon=True).start()
            client = Rolltop(f"http://127.0.0.1:{listener.getsockname()[1]}", repeat_for=0)
            for call in (
                client.boards,
                lambda: list(client.board("b").export()),
                lambda: next(client.board("b").live()),
            ):
                with self.assertRaises(RolltopError) as raised:
                    call()
                self.assertEqual(raised.exception.code, "unexpected_answer")
            answers.clear()

    def test_pages_and_exports_have_all_lines(self) -> None:
        board = self.board()
        for i in range(2_500):
            board.add(f"s{i}", i + 1)
        self.client.flush(30)
        expected = [(f"s{i}", i + 1) for i in reversed(range(2_500))]
        self.assertEqual([(line["subject"], line["score"]) for line in board.lines()], expected)
        self.assertEqual(
            [(line["subject"], line["score"]) for line in board.lines(limit=700, offset=100)], expected[100:]
        )
        self.assertEqual([(line["subject"], line["score"]) for line in board.export()], expected)

    def test_reads_about_subjects(self) -> None:
        board = self.board()
        for subject, amount in (("a", 3), ("b", 2), ("c", 1)):
            self.assertEqual(board.add_now(subject, amount)["accepted"], 1)
        self.assertEqual(board.subject("b")["rank"], 2)
        self.assertEqual([line["subject"] for line in board.neighbors("b", 1)["items"]], ["a", "b", "c"])
        self.assertEqual([(e["subject"], e["rank"]) for e in board.lookup(["c", "a"])["items"]], [("a", 1), ("c", 3)])
        self.assertEqual(board.lookup(["c"], ranks=False)["items"][0]["score"], 1)
        self.assertEqual(board.count("a", last="1h")["value"], 3)
        answers = self.client.query([{"board": board.name, "subject": "a"}, {"board": board.name, "subject": "x"}])
        self.assertEqual([answer.get("value") for answer in answers["answers"]], [3, 0])
        board.remove("a")
        self.assertEqual(board.subject("a")["rank"], None)
        self.assertTrue(self.client.evaluate("COUNT(24h, like, post_id) >= 0", {"post_id": "x"})["hit"])

    def test_subjects_are_hidden_and_frozen(self) -> None:
        board = self.board()
        for subject, amount in (("a", 3), ("b", 2), ("c/1", 1)):
            board.add(subject, amount)
        self.client.flush(60)
        self.assertTrue(board.hide("a")["hidden"])
        self.assertEqual([line["subject"] for line in board.lines()], ["b", "c/1"])
        self.assertTrue(board.subject("a")["hidden"])
        self.assertTrue(board.hide("a", shadow=True)["shadow"])
        self.assertEqual(board.subject("a")["rank"], 1)
        done = board.hide_all([{"subject": "c/1"}, {"subject": "b", "hidden": False}, {"subject": ""}])
        self.assertEqual((done["accepted"], done["rejected"][0]["code"]), (2, "invalid_subject"))
        self.assertEqual([one["subject"] for one in board.hidden()], ["a", "c/1"])
        self.assertEqual([one["subject"] for one in board.hidden("c")], ["c/1"])
        self.assertFalse(board.show("c/1")["hidden"])
        self.assertTrue(board.freeze("c/1")["frozen"])
        board.add("c/1")
        self.client.flush(60)
        self.assertEqual(board.delivery.rejected, 1)
        self.assertEqual([one["subject"] for one in board.frozen()], ["c/1"])
        self.assertFalse(board.unfreeze("c/1")["frozen"])
        self.assertEqual(board.freeze_all([{"subject": "b"}])["accepted"], 1)

    def test_attributes_are_set_changed_listed_and_removed(self) -> None:
        board = self.board()
        self.assertEqual(board.attributes("a/1"), {})
        picture = {"url": "/a.png", "sizes": [1, 2.5, None], "none": {}}
        self.assertEqual(board.set_attributes("a/1", {"name": "Ann", "old": True, "picture": picture})["picture"], picture)
        exact = {"huge": 12345678901234567890, "price": Decimal("0.10"), "small": Decimal("1E-30"), "ratio": 1e22}
        changed = board.change_attributes("a/1", {"old": None, "picture": None, **exact})
        self.assertEqual(changed, {"name": "Ann", **exact})
        self.assertEqual(str(changed["price"]), "0.10")
        self.assertEqual(board.change_attributes("a/1", board.attributes("a/1")), changed)
        self.assertEqual(board.set_attributes("a/1", {"name": "Ann"}), {"name": "Ann"})
        receipt = board.describe_all(
            [
                {"subject": "b", "attributes": {"name": "Bob", "price": Decimal("2.50")}},
                {"subject": "b", "attributes": {"level": 2}},
                {"subject": "c", "attributes": {"name": "Cid"}},
                {"subject": "c", "attributes": None},
                {"subject": "d", "attributes": {"no name": 1}},
            ]
        )
        self.assertEqual((receipt["accepted"], receipt["rejected"][0]["code"]), (4, "invalid_attributes"))
        bob = {"subject": "b", "attributes": {"level": 2, "name": "Bob", "price": Decimal("2.50")}}
        self.assertEqual(list(board.described()), [{"subject": "a/1", "attributes": {"name": "Ann"}}, bob])
        self.assertEqual(list(board.described("b")), [bob])
        with self.assertRaises(RolltopError) as raised:
            board.set_attributes("a/1", {"long": "x" * 2_000})
        self.assertEqual(raised.exception.status, 422)
        self.assertIsNone(board.remove_attributes("a/1"))
        self.assertEqual(board.attributes("a/1"), {})

    def test_what_json_does_not_have_is_no_attribute(self) -> None:
        board = self.board()
        board.set_attributes("a", {"kept": 1})
        cases: list[tuple[Any, type[Exception], str]] = [
            ({"kept": float("nan")}, ValueError, "attributes.kept: NaN"),
            ({"kept": Decimal("Infinity")}, ValueError, "attributes.kept: Infinity"),
            ({"kept": {"inner": [1, {2}]}}, TypeError, r"attributes.kept.inner\[1\]: set is not JSON"),
            ({"kept": {1: 2}}, TypeError, "attributes.kept: a name must be a text"),
            ({"kept": b"x"}, TypeError, "attributes.kept: bytes is not JSON"),
            ([("kept", 1)], TypeError, "attributes must be a dictionary"),
        ]
        for given, kind, message in cases:
            for call in (
                lambda: board.set_attributes("a", given),
                lambda: board.change_attributes("a", given),
                lambda: board.describe_all([{"subject": "a", "attributes": given}]),
                lambda: board.add("a", attributes=given),
                lambda: board.add_now("a", attributes=given),
            ):
                with self.subTest(given), self.assertRaisesRegex(kind, message):
                    call()
        self.client.flush(60)
        self.assertEqual((board.attributes("a"), board.subject("a")["score"]), ({"kept": 1}, 0))

    def test_attributes_beside_lines_and_with_items(self) -> None:
        told: list[tuple[str, str]] = []
        name = self.board(batching=None).name
        reports = Reports(
            on_attributes_rejected=lambda item, code, _: told.append((item["subject"], code)),
            on_rejected=lambda item, code, _: told.append((item["subject"], code)),
        )
        client = Rolltop(self.service.url)
        self.addCleanup(client.close)
        board = client.board(name, Batching(coalesces=True, seconds=60), reports)
        board.add("a", 3, attributes={"name": "Ann", "price": Decimal("0.10")})
        board.add("b")
        board.add("b")
        board.add_now("b", -1, attributes={"level": Decimal("1.50"), "none": None})
        board.set_attributes("c", {"long": "x" * 900})
        board.add("c", attributes={"other": "x" * 900})
        board.add("d", attributes={"no name": 1})
        client.flush(60)
        self.assertEqual(sorted(told), [("c", "invalid_attributes"), ("d", "invalid_attributes")])
        self.assertEqual(board.subject("c")["score"], 1)
        board.remove("c")
        named, shown = ["name", "price"], {"name": "Ann", "price": Decimal("0.10")}
        expected = [("a", shown), ("b", {})]
        for lines in (
            board.top(attributes=named)["items"],
            board.lines(attributes="name,price", limit=1),
            board.export(attributes=named),
            board.neighbors("a", attributes=named)["items"],
            board.lookup(["a", "b"], attributes=named)["items"],
        ):
            self.assertEqual([(line["subject"], line["attributes"]) for line in lines], expected)
        self.assertNotIn("attributes", board.top(attributes=[])["items"][0])
        self.assertEqual(board.subject("b", attributes="*")["attributes"], {"level": Decimal("1.50")})
        with closing(board.live(attributes=named)) as rankings:
            self.assertEqual([line["attributes"] for line in next(rankings)["items"]], [shown, {}])
            board.set_attributes("b", {"name": "Bob"})
            self.assertEqual([line["attributes"] for line in next(rankings)["items"]], [shown, {"name": "Bob"}])

        genres = client.board(f"{name}-genres", SOON)
        genres.define({"metric": "COUNT(24h, play, song BY genre)", "slot": "1h"})
        genres.add("s", by="jazz", attributes={"name": "So What"})
        client.flush(60)
        self.assertEqual((genres.attributes("s", by="jazz"), genres.attributes("s", by="rock")), ({"name": "So What"}, {}))
        best = genres.best(["jazz"], attributes="name")["rankings"][0]
        self.assertEqual(best["items"][0]["attributes"], {"name": "So What"})
        self.assertEqual([subject["by"] for subject in genres.described()], ["jazz"])

        years = client.board(f"{name}-years", SOON)
        years.define({"metric": "COUNT(all, play, song)", "season": {"every": "1y"}, "attributes": name})
        years.add("a")
        client.flush(60)
        self.assertEqual(years.periods(attributes=named)["items"][0]["winners"][0]["attributes"], shown)

    def test_the_distribution_of_scores(self) -> None:
        board = self.client.board("spread")
        board.define({"metric": "SUM(24h, sale, amount, seller BY country)", "slot": "1h", "decimals": 2})
        for subject, amount in (("a", Decimal("1.25")), ("b", 20), ("c", 20), ("d", 300)):
            board.add(subject, amount, by="se")
        self.client.flush(60)
        found = board.distribution([0, 50, 99.9], [Decimal("2.50"), 20, 3e2], by="se")
        at = [(one["percentile"], one["score"]) for one in found["percentiles"]]
        self.assertEqual(at, [(0, Decimal("1.25")), (50, 20), (Decimal("99.9"), 300)])
        ranges = [(one["from"], one["to"], one["subjects"]) for one in found["ranges"]]
        self.assertEqual(ranges, [(None, 2.5, 1), (2.5, 20, 0), (20, 300, 2), (300, None, 1)])
        self.assertEqual((found["by"], found["total"]), ("se", 4))
        none = board.distribution(by="no")
        self.assertEqual((none["total"], len(none["percentiles"]), none["ranges"]), (0, 8, []))
        with self.assertRaises(ValueError):
            board.distribution([float("nan")])

    def test_tiers_are_set_and_shown(self) -> None:
        board = self.client.board("tiered")
        board.define({"metric": "SUM(24h, sale, amount, seller)", "slot": "1h", "decimals": 2})
        self.assertEqual(board.tiers(), {"board": "tiered", "tiers": []})
        for subject, amount in (("a", 9), ("b", 5), ("c", Decimal("2.50")), ("d", 1)):
            board.add(subject, amount)
        self.client.flush(60)
        tiers = [
            {"name": "gold", "top": 12.5},
            {"name": 'the "second"', "rank": 2},
            {"name": "bronze", "score": Decimal("2.50")},
        ]
        self.assertEqual(board.set_tiers(tiers)["tiers"], tiers)
        self.assertEqual(board.tiers()["tiers"], tiers)
        expected = ["gold", 'the "second"', "bronze", None]
        self.assertEqual([line.get("tier") for line in board.top()["items"]], expected)
        self.assertEqual([line.get("tier") for line in board.export()], expected)
        self.assertEqual([line.get("tier") for line in board.lookup(["d", "a"])["items"]], ["gold", None])
        self.assertEqual([line.get("tier") for line in board.neighbors("a", 1)["items"]], expected[:2])
        self.assertEqual(board.subject("c").get("tier"), "bronze")
        with closing(board.live()) as rankings:
            self.assertEqual([line.get("tier") for line in next(rankings)["items"]], expected)
            self.assertEqual(board.set_tiers([])["tiers"], [])
            self.assertEqual([line.get("tier") for line in next(rankings)["items"]], [None] * 4)
        with self.assertRaises(RolltopError) as refused:
            board.set_tiers([{"name": "none", "rank": 0}])
        self.assertEqual(refused.exception.code, "invalid_field")
        with self.assertRaises(ValueError):
            board.set_tiers([{"name": "none", "score": float("nan")}])

    def test_periods_are_listed_and_read(self) -> None:
        board = self.client.board("season")
        board.define({"metric": "COUNT(all, like, post_id)", "season": {"every": "1y", "archive": 3}})
        [period] = board.periods()["items"]
        name = period["name"]
        self.assertEqual((period["final"], period.get("total"), period.get("winners")), (False, 0, []))
        for subject, amount in (("a", 3), ("b", 2), ("c", 1)):
            self.assertEqual(board.add_now(subject, amount, period=name)["accepted"], 1)
        with self.assertRaises(RolltopError) as refused:
            board.add_now("a", period="1999")
        self.assertEqual(refused.exception.code, "unknown_period")
        [listed] = board.periods(winners=2, after="1999", limit=1)["items"]
        self.assertEqual(listed, period | {"total": 3, "winners": board.top(limit=2)["items"]})
        self.assertEqual(board.periods(after=name)["items"], board.periods(final=True)["items"])

        read = board.top(period=name)
        self.assertEqual([line["subject"] for line in read["items"]], ["a", "b", "c"])
        self.assertEqual(read.get("period"), {part: period[part] for part in ("name", "start", "end", "final")})
        self.assertEqual(list(board.lines(period=name, limit=2)), read["items"])
        self.assertEqual(list(board.export(period=name)), read["items"])
        self.assertEqual(board.lookup(["b"], period=name)["items"][0]["score"], 2)
        self.assertEqual(board.subject("b", period=name)["rank"], 2)
        self.assertEqual(board.neighbors("b", 1, period=name)["items"], read["items"])
        self.assertEqual(board.distribution([100], period=name)["percentiles"][0]["score"], 3)
        for call in (lambda: board.top(period="1999"), self.client.board("hot-posts").periods):
            with self.assertRaises(RolltopError) as refused:
                call()
            self.assertEqual(refused.exception.code, "unknown_period")

    def test_periods_are_closed(self) -> None:
        board = self.client.board("cup")
        board.define({"metric": "COUNT(all, goal, player)", "season": {"every": "manual"}})
        board.add_now("a")
        done = board.close_period("1")
        self.assertEqual((done["closed"]["name"], done["current"]["name"]), ("1", "2"))
        self.assertEqual((done["closed"]["end"], done["current"]["end"]), (done["current"]["start"], None))
        # A name that is closed already closes nothing more.
        self.assertEqual(board.close_period("1"), done)
        self.assertEqual([line["subject"] for line in board.top(period="1")["items"]], ["a"])
        self.assertEqual(board.top()["items"], [])
        for period, code in (("7", "unknown_period"), ("2", "period_conflict"), (None, "period_conflict")):
            with self.assertRaises(RolltopError) as refused:
                board.close_period(period)
            self.assertEqual(refused.exception.code, code)

    def test_subjects_and_keys_may_have_any_text(self) -> None:
        board = self.board("COUNT(24h, like, post_id BY community)")
        names = ["a/b?c=%20&d", "日本語", "🎉", "..", 'quote"', "+ +"]
        for name in names:
            board.add(name, 2, by=name)
        self.client.flush(60)
        self.assertEqual(list(board.keys()), sorted(names, key=lambda name: name.encode()))
        self.assertEqual(list(board.keys("日")), ["日本語"])
        for name in names:
            self.assertEqual(board.top(by=name)["items"], [{"rank": 1, "subject": name, "score": 2}])
        best = board.best(names[:2], limit=1)["rankings"]
        self.assertEqual([(ranking["by"], ranking["total"]) for ranking in best], [(name, 1) for name in names[:2]])

    def test_decimals_are_exact(self) -> None:
        board = self.client.board("prices", SOON)
        board.add("exact", Decimal("0.1"))
        board.add("exact", Decimal("1876499844736.02"))
        self.client.flush(60)
        self.assertEqual(board.subject("exact")["score"], Decimal("1876499844736.12"))

    def test_definitions(self) -> None:
        board = self.client.board("defined-" + self.store[:5])
        self.assertIn("bytes_per_subject", board.define({"metric": "COUNT(1h, e, s)", "slot": "1m"}, dry_run=True))
        board.define({"metric": "COUNT(1h, e, s)", "slot": "1m"})
        self.assertEqual(board.status()["slots_in_window"], 60)
        self.assertIn(board.name, [item["board"] for item in self.client.boards()["items"]])
        with self.assertRaises(RolltopError) as raised:
            board.define({"metric": "COUNT(1h, e, s", "slot": "1m"})
        self.assertEqual((raised.exception.code, raised.exception.problem["column"]), ("invalid_field", 15))
        board.undefine()
        self.assertIn("items", self.client.request("GET", "/v1/boards"))

    def test_live_rankings_survive_a_restart(self) -> None:
        board = self.board()
        board.add_now("a", 2)
        seen: list[list[tuple[str, int]]] = []
        done = threading.Event()

        def follow() -> None:
            for ranking in Rolltop(self.service.url).board(board.name).live(limit=10):
                seen.append([(line["subject"], line["score"]) for line in ranking["items"]])
                if len(ranking["items"]) == 3:
                    done.set()
                    return

        threading.Thread(target=follow, daemon=True).start()
        self.wait_until(lambda: bool(seen))
        board.add_now("b", 3)
        self.wait_until(lambda: len(seen[-1]) == 2)
        self.service.kill()
        self.service.start()
        board.add_now("c", 1)
        self.assertTrue(done.wait(60), seen)
        self.assertEqual((seen[0], seen[-1]), ([("a", 2)], [("b", 3), ("a", 2), ("c", 1)]))

    def test_a_child_process_begins_with_nothing(self) -> None:
        board = self.board(batching=Batching(seconds=60))
        board.add("parent")
        child = os.fork()
        if child == 0:
            try:
                board.add("child")
                os._exit(0 if self.client.flush(60) else 1)
            finally:
                os._exit(2)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.client.flush(60)
        self.assertEqual({line["subject"]: line["score"] for line in board.top()["items"]}, {"parent": 1, "child": 1})

    def test_the_examples_of_the_readme(self) -> None:
        text = (Path(__file__).parent.parent / "README.md").read_text()
        first, aio, batching, reads, attributes, tokens = re.findall("```python\n(.*?)```", text, re.S)
        printed: list[tuple[object, ...]] = []
        exec(first.replace("http://127.0.0.1:8080", self.service.url), {"print": lambda *what: printed.append(what)})
        self.assertIn("post-2", [subject for _, subject, _ in printed])
        names: dict[str, Any] = {
            "print": lambda *_: None,
            "service": self.client,
            "posts": self.client.board("hot-posts"),
        }
        exec(aio.replace("http://127.0.0.1:8080", self.service.url), names)
        asyncio.run(names["main"]())
        exec(batching, names)
        exec(reads.replace("...", "break"), names)
        exec(attributes, names)
        exec(tokens, names | {"secret": "x" * 32})


@unittest.skipUnless(REDIS, "there is no redis-server")
class CallsOnRedis(Calls):
    @classmethod
    def setUpClass(cls) -> None:
        cls.redis = Redis(REDIS or "")
        cls.store = cls.redis.url
        super().setUpClass()

    @classmethod
    def tearDownClass(cls) -> None:
        super().tearDownClass()
        if cls.redis:
            cls.redis.close()


if __name__ == "__main__":
    unittest.main()
