"""The pauses between attempts."""

from __future__ import annotations

import random
from collections.abc import Callable

SHORTEST = 0.2
LONGEST = 5.0
# The longest pause that the service may ask for.
LONGEST_ASKED = 300.0


def pause(attempt: int, retry_after: float | None, draw: Callable[[], float] = random.random) -> float:
    """Returns the seconds to wait after the failed attempt of this number, from 0.

    What the service asks for, or else up to twice as long as before, drawn evenly, so that clients that failed together
    do not come back together.
    """
    if retry_after is not None:
        # Somewhat later, for the same reason.
        return min(retry_after, LONGEST_ASKED) + SHORTEST * draw()
    return min(LONGEST, SHORTEST * 2.0 ** min(attempt, 20)) * draw()
