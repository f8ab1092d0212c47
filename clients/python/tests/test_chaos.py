"""Tests with a network that cuts, delays and duplicates, and kills of the service: nothing is lost, nothing counts
twice. `ROLLTOP_CLIENT_ITEMS` is the number of items."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import unittest
from collections import Counter

from service import BadNetwork, Redis, Service

from rolltop import AsyncRolltop, Batching, Rolltop

REDIS = os.environ.get("ROLLTOP_TEST_REDIS") or shutil.which("redis-server")
ITEMS = int(os.environ.get("ROLLTOP_CLIENT_ITEMS", "20000"))
SEED = int(os.environ.get("ROLLTOP_TEST_SEED", random.randrange(1 << 30)))


class Chaos(unittest.TestCase):
    """Of the client for threads."""

    def survives(self, store: str, batching: Batching) -> None:
        service = Service(store)
        self.addCleanup(service.close)
        network = BadNetwork(service.port, SEED)
        self.addCleanup(network.close)
        client = Rolltop(network.url, timeout=3.0)
        board = client.board("hot-posts", batching)
        draw, expected = random.Random(SEED), Counter[str]()
        kills = {ITEMS * part // 5 for part in range(1, 5)}
        for i in range(ITEMS):
            subject = f"s{draw.randrange(300)}"
            board.add(subject)
            expected[subject] += 1
            if i in kills:
                service.kill()
                service.start()
        self.assertTrue(client.close(300), f"seed {SEED}")
        network.is_bad = False
        with Rolltop(service.url) as reader:
            found = {line["subject"]: line["score"] for line in reader.board("hot-posts").lines()}
        self.assertEqual(found, dict(expected), f"seed {SEED}, {network.faults}")
        self.assertTrue(all(network.faults.get(kind) for kind in ("before", "after", "twice")), network.faults)

    def test_items_on_the_embedded_store(self) -> None:
        self.survives("embedded", Batching(items=100, seconds=0.05))

    def test_sums_on_the_embedded_store(self) -> None:
        # A few subjects at a time, so that there are many requests, however fast items are added.
        self.survives("embedded", Batching(items=3, seconds=0.002, coalesces=True))

    @unittest.skipUnless(REDIS, "there is no redis-server")
    def test_items_on_redis(self) -> None:
        redis = Redis(REDIS or "")
        self.addCleanup(redis.close)
        self.survives(redis.url, Batching(items=100, seconds=0.05))


class AsyncChaos(unittest.IsolatedAsyncioTestCase):
    """Of the client for asyncio."""

    async def test_items_on_the_embedded_store(self) -> None:
        service = Service()
        self.addCleanup(service.close)
        network = BadNetwork(service.port, SEED)
        self.addCleanup(network.close)
        draw, expected = random.Random(SEED), Counter[str]()
        async with AsyncRolltop(network.url, timeout=3.0) as client:
            board = client.board("hot-posts", Batching(items=100, seconds=0.05))
            for i in range(ITEMS):
                subject = f"s{draw.randrange(300)}"
                await board.add(subject)
                expected[subject] += 1
                if i in (ITEMS // 3, 2 * ITEMS // 3):
                    await asyncio.to_thread(service.kill)
                    await asyncio.to_thread(service.start)
        async with AsyncRolltop(service.url) as client:
            found = {line["subject"]: line["score"] async for line in client.board("hot-posts").lines()}
        self.assertEqual(found, dict(expected), f"seed {SEED}, {network.faults}")


if __name__ == "__main__":
    unittest.main()
