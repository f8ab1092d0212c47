"""Uses of the client, for the check of types only."""

from decimal import Decimal

from rolltop import AsyncRolltop, Batching, Rolltop

service = Rolltop("http://127.0.0.1:8080", key="rt_x")
board = service.board("hot-posts", Batching(coalesces=True))
added: bool = board.add("post-1", Decimal("0.5"), by="rust", id="like-1")
score: int | Decimal | None = board.subject("post-1", window="7d")["score"]
names: list[str] = [line["subject"] for line in board.lines(by="rust")]
keys: list[str] = list(board.keys("ru"))


async def uses() -> None:
    async with AsyncRolltop() as client:
        async for ranking in client.board("hot-posts").live(limit=25):
            total: int | None = ranking["total"]
            assert total != 0
