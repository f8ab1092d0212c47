"""Uses of the client, for the check of types only."""

from contextlib import aclosing, closing
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

from rolltop import AsyncRolltop, Batching, Rolltop

service = Rolltop("http://127.0.0.1:8080", key="rt_x")
board = service.board("hot-posts", Batching(coalesces=True))
added: bool = board.add("post-1", Decimal("0.5"), by="rust", id="like-1")
score: int | Decimal | None = board.subject("post-1", window="7d")["score"]
rated: bool = board.add("film-9", value=4.5)
sold: bool = board.add("shop-1", "19.99", at=datetime.now(timezone.utc))
unliked: bool = service.event("like", {"post_id": "post-1"}, at="2026-01-02T10:07:00Z", retract=True)
names: list[str | None] = [line["subject"] for line in board.lines(by="rust")]
median: int | Decimal | None = board.distribution([50, 99.9], by="rust")["percentiles"][0]["score"]
below: int = board.distribution(scores=[Decimal("0.5")])["ranges"][0]["subjects"]
last: str = board.periods(final=True, after="2026-10", winners=1)["items"][-1]["name"]
best: str | None = board.top(limit=1, period=last)["items"][0]["subject"]
begun: str = board.close_period("3")["current"]["start"]
in_time: int = board.add_now("post-1", 5, period=last, by="rust")["accepted"]
tier: str | None = board.subject("post-1").get("tier")
board.set_tiers(board.tiers()["tiers"])
board.set_tiers([{"name": "gold", "top": 0.5}, {"name": "bronze", "score": Decimal("2.5")}])
attributes: dict[str, Any] | None = board.set_attributes("post-1", {"name": "Ann", "level": Decimal("1.5")}, by="rust")
board.describe_all([{"subject": "post-1", "attributes": None}])
named: dict[str, Any] | None = board.top(attributes=["name", "picture"])["items"][0].get("attributes")
described: list[str] = [one["subject"] for one in board.described("post-")]
board.add("post-1", attributes={"name": None})
keys: list[str] = list(board.keys("ru"))
with closing(board.live(limit=10)) as rankings:
    first: str | None = next(rankings)["items"][0]["subject"]


async def uses() -> None:
    async with AsyncRolltop() as client:
        async with aclosing(client.board("hot-posts").live(limit=25)) as rankings:
            async for ranking in rankings:
                total: int | None = ranking["total"]
                assert total != 0
