"""JSON with exact decimals: numbers with a point are `Decimal`, others `int`."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any


def parse(text: bytes | str) -> Any:
    return json.loads(text, parse_float=Decimal)


def _plain(value: object) -> str:
    if isinstance(value, Decimal):
        # The service takes a number in a text as the same number, exactly.
        return format(value, "f")
    raise TypeError(f"{type(value).__name__} is not JSON")


def print_json(value: object) -> bytes:
    return json.dumps(value, default=_plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
