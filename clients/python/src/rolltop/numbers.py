"""JSON with exact decimals: numbers with a point are `Decimal`, others `int`."""

from __future__ import annotations

import json
import operator
from collections.abc import Mapping
from decimal import Context, Decimal
from typing import Any, SupportsIndex

# So that sums are exact, whatever the program has set for its own.
_EXACT = Context(prec=80)


def exact(number: SupportsIndex | Decimal | float) -> int | Decimal:
    """Returns a number of any type of numbers, also one that belongs to numpy. Raises `TypeError` for what is none."""
    if isinstance(number, Decimal):
        return number
    # As the type itself writes it: a subclass may write it in another way.
    return Decimal(float.__repr__(number)) if isinstance(number, float) else int(operator.index(number))


def add(a: int | Decimal, b: int | Decimal) -> int | Decimal:
    return a + b if isinstance(a, int) and isinstance(b, int) else _EXACT.add(Decimal(a), Decimal(b))


def parse(text: bytes | str) -> Any:
    return json.loads(text, parse_float=Decimal)


def plain(number: int | Decimal) -> str:
    """Returns a number without an exponent."""
    if isinstance(number, Decimal) and not number.is_finite():
        raise ValueError(f"{number} is not a finite number")
    return format(number, "f") if isinstance(number, Decimal) else str(number)


def _default(value: object) -> str:
    if isinstance(value, Decimal):
        # The service takes a number in a text as the same number, exactly.
        return plain(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


# Made once: `json.dumps` would make one for each item.
_ENCODER = json.JSONEncoder(default=_default, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def print_json(value: object) -> bytes:
    return _ENCODER.encode(value).encode()


def print_object(members: Mapping[str, object]) -> str:
    """Returns a flat object in which each `Decimal` is a number: only items have texts in their place."""
    def text(value: object) -> str:
        return plain(value) if isinstance(value, Decimal) else _ENCODER.encode(value)

    return "{" + ",".join(f"{text(name)}:{text(value)}" for name, value in members.items()) + "}"
