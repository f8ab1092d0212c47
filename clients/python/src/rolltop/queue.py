"""Items that wait to be sent to one place: a board, or all boards that count an event."""

from __future__ import annotations

import math
import secrets
from collections import deque
from dataclasses import dataclass
from typing import Any

from .numbers import add, print_item, print_json

# The largest number of bytes of a batch with several items: half of what the service takes if it is not told otherwise.
MAX_BYTES = 4 << 20


def new_id() -> str:
    """Returns an id that nobody else draws: 96 random bits in 16 characters, as short as that allows."""
    return secrets.token_urlsafe(12)


@dataclass(frozen=True, slots=True)
class Batching:
    """How items are gathered.

    - `max_items`: the largest number of items that wait, each in memory twice. Beyond it `add` waits for room, or with
      `drops` drops the item and counts it.
    - `items`, `seconds`: a batch is sent when it has so many items, or when its first item has waited so many seconds.
    - `coalesces`: amounts for equal subjects are added up to one item with one id until they are sent. That saves
      memory of the service, which stores an id for as long as items can be repeated, and lets it combine what is left.
      If one of them is not valid, such as one with more decimals than the board, their sum is rejected.

    Raises `ValueError` for numbers that are not possible.
    """

    max_items: int = 10_000
    items: int = 500
    seconds: float = 1.0
    drops: bool = False
    coalesces: bool = False

    def __post_init__(self) -> None:
        if self.items < 1 or self.max_items < 1:
            raise ValueError("items and max_items must be at least 1")
        object.__setattr__(self, "items", min(self.items, self.max_items))
        if not (math.isfinite(self.seconds) and self.seconds >= 0):
            raise ValueError("seconds must be a number from 0 on")


@dataclass(slots=True, eq=False)
class Waiting:
    """An item, its text, and the time since which it waits."""

    item: dict[str, Any]
    text: bytes
    since: float


class Queue:
    """Holds items in the order in which they came. Not safe for several threads by itself."""

    def __init__(self, batching: Batching) -> None:
        self.batching = batching
        self.dropped = 0
        # The numbers of items that were ever added, and of those that are done with.
        self.added, self.done = 0, 0
        # How many wait for everything, and whether nothing is added any more: then a batch need not be full.
        self.flushing, self.closing = 0, False
        self._waiting: deque[Waiting] = deque()
        # By subject and key: the item to which further amounts are added.
        self._sums: dict[tuple[str, str | None], Waiting] = {}

    def is_full(self) -> bool:
        return len(self._waiting) >= self.batching.max_items

    def is_worth_a_look(self) -> bool:
        """Returns whether the last item may have made a batch due, or begun one."""
        return len(self._waiting) in (1, self.batching.items)

    def combine(self, item: dict[str, Any]) -> bool:
        """Adds the amount to an item that waits, if it may be. Returns whether it was."""
        earlier = self._sums.get(_place(item)) if self._may_combine(item) else None
        if earlier is None:
            return False
        total = add(earlier.item.get("amount", 1), item.get("amount", 1))
        if total is None:
            return False
        earlier.text = print_json({**earlier.item, "amount": total})
        earlier.item["amount"] = total
        return True

    def add(self, item: dict[str, Any], now: float) -> None:
        """Adds an item, with an id unless it has one. Raises `TypeError` or `ValueError` if it is not JSON."""
        stored = item if "id" in item else {**item, "id": new_id()}
        waiting = Waiting(stored, print_item(stored).encode(), now)
        if self._may_combine(item):
            self._sums[_place(item)] = waiting
        self._waiting.append(waiting)
        self.added += 1

    def next(self, now: float) -> list[Waiting] | float | None:
        """Returns the next batch, the seconds until one is due, or None if there will be none any more."""
        if not self._waiting:
            return None if self.closing else math.inf
        left = self._waiting[0].since + self.batching.seconds - now
        if left > 0 and len(self._waiting) < self.batching.items and not self.flushing and not self.closing:
            return left
        batch, size = list[Waiting](), 0
        while self._waiting and len(batch) < self.batching.items:
            size += len(self._waiting[0].text)
            if batch and size > MAX_BYTES:
                break
            waiting = self._waiting.popleft()
            batch.append(waiting)
            if self._sums.get(_place(waiting.item)) is waiting:
                del self._sums[_place(waiting.item)]
        return batch

    def take_rest(self) -> list[Waiting]:
        """Ends: returns all that waits, and counts it as done with."""
        rest = list(self._waiting)
        self._waiting.clear()
        self.closing, self.done = True, self.done + len(rest)
        return rest

    def _may_combine(self, item: dict[str, Any]) -> bool:
        return self.batching.coalesces and item.keys() <= {"subject", "by", "amount"}


def _place(item: dict[str, Any]) -> tuple[str, str | None]:
    return item.get("subject", ""), item.get("by")
