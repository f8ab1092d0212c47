"""Tests of the client for asyncio: what differs from the one with threads."""

from __future__ import annotations

import asyncio
import sys
import unittest
from asyncio.subprocess import PIPE
from decimal import Decimal

from service import Service

from rolltop import AsyncRolltop, Batching, Reports, RolltopError

SOON = Batching(seconds=0.05)


class AsyncCalls(unittest.IsolatedAsyncioTestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.service = Service()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.service.close()

    async def test_items_are_counted_in_the_background_and_read(self) -> None:
        async with AsyncRolltop(self.service.url) as client:
            board = client.board("a", SOON)
            await board.define({"metric": "COUNT(24h, x, s BY k)", "slot": "1h"})
            for i in range(1_200):
                await board.add(f"s{i:04}", i + 1, by="one")
            await client.flush()
            expected = [(f"s{i:04}", i + 1) for i in reversed(range(1_200))]
            self.assertEqual([(line["subject"], line["score"]) async for line in board.lines(by="one")], expected)
            self.assertEqual([(line["subject"], line["score"]) async for line in board.export(by="one")], expected)
            self.assertEqual([key async for key in board.keys()], ["one"])
            self.assertEqual((await board.add_now("s0000", by="two"))["accepted"], 1)
            best = (await board.best(["two", "one"], 1))["rankings"]
            self.assertEqual([ranking["items"][0]["score"] for ranking in best], [1, 1_200])
            self.assertEqual((await board.subject("s0000", by="one"))["rank"], 1_200)
            self.assertEqual(len((await board.neighbors("s0010", 2, by="one"))["items"]), 5)
            self.assertEqual((await board.lookup(["s0001"], by="one"))["items"][0]["score"], 2)
            self.assertEqual((await board.count("s0001", by="one", last="1h"))["value"], 2)
            spread = await board.distribution([50], [601], by="one")
            self.assertEqual(spread["percentiles"], [{"percentile": 50, "score": 600}])
            self.assertEqual([part["subjects"] for part in spread["ranges"]], [600, 600])
            self.assertEqual((await board.set_tiers([{"name": "first", "rank": 1}])), await board.tiers())
            first = await board.top(limit=2, by="one")
            self.assertEqual([line.get("tier") for line in first["items"]], ["first", None])
            self.assertEqual((await board.status())["total"], 1_201)
            await board.remove("s0000", all_keys=True)
            self.assertEqual((await board.status())["keys"], 1)
            self.assertEqual(len((await client.boards())["items"]), 5)
            answers = await client.query([{"board": "a", "by": "one", "subject": "s0001"}])
            self.assertEqual(answers["answers"][0].get("value"), 2)
            await client.event("like", {"post_id": "p", "community": "c"})
            await client.flush()
            self.assertTrue((await client.evaluate("COUNT(24h, like, post_id) >= 1", {"post_id": "p"}))["hit"])
            await board.undefine()

    async def test_periods_are_listed_and_read(self) -> None:
        async with AsyncRolltop(self.service.url) as client:
            board = client.board("season")
            await board.define({"metric": "COUNT(all, x, s)", "season": {"every": "1y"}})
            [period] = (await board.periods())["items"]
            self.assertEqual((await board.add_now("a", 2, period=period["name"]))["accepted"], 1)
            self.assertEqual((await board.periods(winners=1))["items"][0].get("total"), 1)
            self.assertEqual((await board.subject("a", period=period["name"]))["score"], 2)
            self.assertEqual([line["score"] async for line in board.export(period=period["name"])], [2])

    async def test_values_are_removed_from_all_subjects(self) -> None:
        async with AsyncRolltop(self.service.url) as client:
            board = client.board("likes-by-people")
            await board.define({"metric": "COUNT_DISTINCT(24h, like, post BY country, user)", "slot": "1h"})
            for country in ("se", "no"):
                await board.add_now("p", value="ann", by=country)
            self.assertEqual((await board.remove_values(["ann"], by="se"))["values"], 1)
            self.assertEqual([key async for key in board.keys()], ["no"])
            await board.undefine()

    async def test_periods_are_closed(self) -> None:
        async with AsyncRolltop(self.service.url) as client:
            board = client.board("cup")
            await board.define({"metric": "COUNT(all, x, s)", "season": {"every": "manual"}})
            done = await board.close_period("1")
            self.assertEqual((done["closed"]["name"], done["current"]["name"]), ("1", "2"))
            self.assertEqual(await board.close_period("1"), done)

    async def test_attributes(self) -> None:
        told: list[str] = []
        reports = Reports(on_attributes_rejected=lambda item, code, _: told.append(code))
        async with AsyncRolltop(self.service.url) as client:
            board = client.board("people", SOON, reports)
            await board.define({"metric": "COUNT(24h, x, s)", "slot": "1h"})
            self.assertEqual(await board.set_attributes("a", {"name": "Ann", "old": True}), {"name": "Ann", "old": True})
            price = Decimal("0.10")
            await board.change_attributes("a", {"old": None, "price": price})
            self.assertEqual(str((await board.attributes("a"))["price"]), "0.10")
            await board.describe_all([{"subject": "b", "attributes": {"price": price}}])
            self.assertEqual([one["subject"] async for one in board.described()], ["a", "b"])
            await board.add("a", attributes={"level": Decimal("1.50")})
            await board.add_now("a", attributes={"price": Decimal("0.20")})
            await board.add("a", attributes={"long": "x" * 990})
            await client.flush()
            self.assertEqual(told, ["invalid_attributes"])
            with self.assertRaises(ValueError):
                await board.add("a", attributes={"level": float("nan")})
            expected = {"level": Decimal("1.50"), "price": Decimal("0.20")}
            first = (await board.top(attributes=["level", "price"]))["items"][0]
            self.assertEqual((first["score"], first["attributes"]), (3, expected))
            await board.remove_attributes("a")
            self.assertEqual(await board.attributes("a"), {})
            await board.undefine()

    async def test_a_batch_is_sent_without_flush(self) -> None:
        async with AsyncRolltop(self.service.url) as client:
            board = client.board("hot-posts", SOON)
            await board.add("by-time")
            async with asyncio.timeout(60):
                while (await board.subject("by-time"))["rank"] is None:
                    await asyncio.sleep(0.02)

    async def test_failures_are_raised_and_reported(self) -> None:
        client = AsyncRolltop(self.service.url)
        await client.board("does-not-exist", SOON).add("a")
        with self.assertLogs("rolltop", "ERROR"), self.assertRaises(RolltopError) as raised:
            await client.close()
        self.assertEqual(raised.exception.code, "unknown_board")
        failed: list[str] = []
        reports = Reports(on_failed=lambda items, error: failed.extend([error.code] * len(items)), give_up_after=0)
        unreachable = AsyncRolltop("http://127.0.0.1:9")
        board = unreachable.board("b", Batching(max_items=3, items=2, drops=True), reports)
        kept = [await board.add(f"s{i}") for i in range(5)]
        self.assertEqual((kept, board.dropped), ([True] * 3 + [False] * 2, 2))
        await unreachable.close()
        self.assertEqual(failed, ["unreachable"] * 3)

    async def test_a_close_that_is_cancelled_can_be_repeated(self) -> None:
        service = Service()
        self.addCleanup(service.close)
        client = AsyncRolltop(service.url)
        service.kill()
        await client.board("hot-posts", SOON).add("a")
        await client.board("prices", SOON).add("a")
        with self.assertRaises(TimeoutError):
            await asyncio.wait_for(client.close(), 0.5)
        await asyncio.to_thread(service.start)
        await client.close()
        async with AsyncRolltop(service.url) as reader:
            self.assertEqual((await reader.board("hot-posts").subject("a"))["score"], 1)
            self.assertEqual((await reader.board("prices").subject("a"))["score"], 1)

    async def test_live_rankings(self) -> None:
        async with AsyncRolltop(self.service.url) as client:
            board = client.board("live")
            await board.define({"metric": "COUNT(24h, x, s)", "slot": "1h"})
            await board.add_now("a")
            seen: list[list[str]] = []
            async with asyncio.timeout(60):
                async for ranking in board.live(limit=10):
                    seen.append([line["subject"] for line in ranking["items"]])
                    if len(seen) == 1:
                        await board.add_now("b", 2)
                    else:
                        break
            self.assertEqual(seen, [["a"], ["b", "a"]])

    async def test_a_loop_over_a_live_ranking_may_be_left_at_any_time(self) -> None:
        async with AsyncRolltop(self.service.url) as client:
            board = client.board("left")
            await board.define({"metric": "COUNT(24h, x, s)", "slot": "1h"})
            await board.add_now("a")
        for leave in ("break", "raise KeyError", "asyncio.current_task().cancel()", "await client.close(); break"):
            # A program of its own: what is wrong is printed as its generators are closed.
            program = LEAVING.format(url=self.service.url, leave=leave)
            process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=PIPE, stderr=PIPE)
            said, wrong = await process.communicate()
            with self.subTest(leave=leave):
                self.assertEqual((said.split(), wrong.decode()), ([b"a", b"left"], ""))
        async with AsyncRolltop(self.service.url) as client:
            await client.board("left").undefine()


LEAVING = """
import asyncio
from rolltop import AsyncRolltop

async def main():
    client = AsyncRolltop("{url}")
    try:
        async for ranking in client.board("left").live():
            print(ranking["items"][0]["subject"], flush=True)
            {leave}
    except (KeyError, asyncio.CancelledError):
        pass
    await client.close()
    print("left")

asyncio.run(main())
"""


if __name__ == "__main__":
    unittest.main()
