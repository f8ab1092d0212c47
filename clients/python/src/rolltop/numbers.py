"""JSON with exact decimals: numbers with a point are `Decimal`, others `int`."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Mapping
from decimal import Context, Decimal, Inexact
from typing import Any, SupportsIndex

# So that sums are exact, whatever the program has set for its own.
_EXACT = Context(prec=80, traps=[Inexact])
# A number as JSON has it. `Decimal` would also take `1_000`, and numbers within spaces.
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
# The exponents that are written as digits. Nobody's amount has others, and `1e999999999` must not fill the memory.
_MOST_ZEROS = 100


def exact(number: str | SupportsIndex | Decimal | float, name: str = "a number") -> int | Decimal:
    """Returns a number of any type of numbers, also one that belongs to numpy, or that is written in a text. Raises
    `TypeError` or `ValueError` for what is none, with this name."""
    if isinstance(number, str):
        if not _NUMBER.fullmatch(number):
            raise ValueError(f"{name}: {number[:40]!r} is not a number, such as 19.99")
        return Decimal(number)
    if not isinstance(number, Decimal | float):
        if isinstance(number, bool) or not hasattr(number, "__index__"):
            raise TypeError(f"{name} must be a number, or a text with one, not {type(number).__name__}")
        return int(operator.index(number))
    # As the type itself writes it: a subclass may write it in another way.
    decimal = Decimal(float.__repr__(number)) if isinstance(number, float) else number
    if not decimal.is_finite():
        raise ValueError(f"{name}: {decimal} is not a finite number")
    return decimal


def add(a: int | Decimal, b: int | Decimal) -> int | Decimal | None:
    """Returns the sum, or None if it has too many digits."""
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    try:
        return _EXACT.add(Decimal(a), Decimal(b))
    except ArithmeticError:
        return None


def parse(text: bytes | str) -> Any:
    return json.loads(text, parse_float=Decimal)


def plain(number: int | Decimal) -> str:
    """Returns a number without an exponent, unless it would have many zeros."""
    if not isinstance(number, Decimal):
        return str(number)
    exponent = number.as_tuple().exponent
    if isinstance(exponent, str):
        raise ValueError(f"{number} is not a finite number")
    return format(number, "f") if abs(exponent) <= _MOST_ZEROS else str(number)


def _default(value: object) -> str:
    if isinstance(value, Decimal):
        # The service takes a number in a text as the same number, exactly.
        return plain(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


# Made once: `json.dumps` would make one for each item.
_ENCODER = json.JSONEncoder(default=_default, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def print_json(value: object) -> bytes:
    return _ENCODER.encode(value).encode()


def print_item(item: Mapping[str, object]) -> str:
    """Returns an item as it is sent. Numbers in its attributes are numbers; elsewhere each `Decimal` is a text."""
    if "attributes" not in item:
        return _ENCODER.encode(item)
    rest = _ENCODER.encode({name: value for name, value in item.items() if name != "attributes"})
    attributes = item["attributes"]
    printed = "null" if attributes is None else print_attributes(attributes)
    return f"{rest[:-1]}{',' if len(rest) > 2 else ''}\"attributes\":{printed}}}"


def print_attributes(attributes: object) -> str:
    """Returns attributes as they are sent, with each number digit by digit. Raises `TypeError` or `ValueError`, with the
    name of what is wrong, for what JSON does not have."""
    if not isinstance(attributes, Mapping):
        raise TypeError(f"attributes must be a dictionary, not {type(attributes).__name__}")
    return _print_value("attributes", attributes)


def _print_value(name: str, value: object) -> str:
    if value is None or isinstance(value, bool | str):
        return _ENCODER.encode(value)
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"{name}: a name must be a text, not {type(key).__name__}")
        return "{" + ",".join(f"{_ENCODER.encode(k)}:{_print_value(f'{name}.{k}', v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(_print_value(f"{name}[{at}]", member) for at, member in enumerate(value)) + "]"
    if not isinstance(value, Decimal | float) and not hasattr(value, "__index__"):
        raise TypeError(f"{name}: {type(value).__name__} is not JSON")
    number = exact(value, name)
    return float.__repr__(value) if isinstance(value, float) else plain(number)


def print_object(members: Mapping[str, object]) -> str:
    """Returns a flat object in which each `Decimal` is a number: only items have texts in their place."""
    def text(value: object) -> str:
        return plain(value) if isinstance(value, Decimal) else _ENCODER.encode(value)

    return "{" + ",".join(f"{text(name)}:{text(value)}" for name, value in members.items()) + "}"
