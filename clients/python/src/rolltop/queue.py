"""Items that wait to be sent to one place: a board, or all boards that count an event."""

from __future__ import annotations

import secrets
from collections import deque
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

Amount = int | Decimal


def new_id() -> str:
    """Returns an id that nobody else draws: 96 random bits in 16 characters, as short as that allows."""
    return secrets.token_urlsafe(12)


@dataclass(frozen=True, slots=True)
class Batching:
    """How items are gathered.

    - `max_items`: the largest number of items that wait. Beyond it `add` waits for room, or with `drops` drops the item
      and counts it.
    - `items`, `seconds`: a batch is sent when it has so many items, or when its first item has waited so long.
    - `coalesces`: amounts for equal subjects are added up to one item with one id until they are sent. That saves
      memory of the service, which stores an id for as long as items can be repeated, and lets it combine what is left.
      Do not use it where each item must be seen by itself, such as with `return_scores`.
    """

    max_items: int = 10_000
    items: int = 500
    seconds: float = 1.0
    drops: bool = False
    coalesces: bool = False


class Queue:
    """Holds items in the order in which they came. Not safe for several threads by itself."""

    def __init__(self, batching: Batching) -> None:
        self.batching = batching
        self.waiting: deque[dict[str, Any]] = deque()
        self.dropped = 0
        # The numbers of items that were ever added, and of those that are done with.
        self.added, self.done = 0, 0
        # By subject and key: the item to which further amounts are added.
        self._sums: dict[tuple[str, str | None], dict[str, Any]] = {}

    def __len__(self) -> int:
        return len(self.waiting)

    def is_full(self) -> bool:
        return len(self.waiting) >= self.batching.max_items

    def is_due(self) -> bool:
        return len(self.waiting) >= self.batching.items

    def combine(self, item: dict[str, Any]) -> bool:
        """Adds the amount to an item that waits, if it may be. Returns whether it was."""
        if not self._may_combine(item):
            return False
        earlier = self._sums.get((item["subject"], item.get("by")))
        if earlier is None:
            return False
        earlier["amount"] = earlier.get("amount", 1) + item.get("amount", 1)
        return True

    def add(self, item: dict[str, Any]) -> None:
        """Adds an item, with an id unless it has one."""
        stored = item if "id" in item else {**item, "id": new_id()}
        if self._may_combine(item):
            self._sums[item["subject"], item.get("by")] = stored
        self.waiting.append(stored)
        self.added += 1

    def take(self) -> list[dict[str, Any]]:
        """Removes the next batch."""
        batch = [self.waiting.popleft() for _ in range(min(len(self.waiting), self.batching.items))]
        for item in batch:
            place = (item.get("subject", ""), item.get("by"))
            if self._sums.get(place) is item:
                del self._sums[place]
        return batch

    def _may_combine(self, item: dict[str, Any]) -> bool:
        return self.batching.coalesces and item.keys() <= {"subject", "by", "amount"}
