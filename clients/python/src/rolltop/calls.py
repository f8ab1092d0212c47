"""The requests, without the sending: both clients share this."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, Generic, Literal, TypeAlias, TypedDict, TypeVar
from urllib.parse import quote

from . import schema
from .numbers import exact, plain, print_attributes, print_item, print_object

T = TypeVar("T")
# A text is the number that is written in it, exactly.
Amount: TypeAlias = str | int | Decimal | float
Page = TypeVar("Page", schema.KeyPage, schema.ModeratedPage, schema.DescribedPage)
# Names of attributes: a list, a text with commas between them, or `*` for all.
Names: TypeAlias = str | Sequence[str]


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A request whose answer is a `T`. A body of bytes is JSON already. It is sent again after an error if it is
    repeatable: if a second time does no harm."""

    method: str
    path: str
    params: Mapping[str, object] = field(default_factory=dict)
    body: object = None
    is_repeatable: bool = True

    def query(self) -> dict[str, str]:
        # The service takes no empty list of names.
        return {name: _text(value) for name, value in self.params.items() if value not in (None, [], ())}


def _text(value: object) -> str:
    if isinstance(value, list | tuple):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


class InRanking(TypedDict, total=False):
    """Which ranking: `window`, the length of one of several windows; `by`, the key, on boards with BY; `of`, `next` or
    `previous` for the other edition."""

    window: str
    by: str
    of: str


class InPeriod(InRanking, total=False):
    """Also `period`, the name of a period such as `2026-11`, on boards with a season; by default the current one."""

    period: str


class Shown(InPeriod, total=False):
    """Also `attributes`, the names of those that each line has, such as `["name", "picture"]`, or `*` for all."""

    attributes: Names


class InPage(Shown, total=False):
    """`limit` lines from `offset` or `cursor` on."""

    limit: int
    offset: int
    cursor: str


class InLive(InRanking, total=False):
    """`limit` lines, read once in each `interval`, each with these `attributes`."""

    limit: Literal[10, 25, 50, 100]
    interval: Literal["1s", "5s", "15s", "1m"]
    attributes: Names


class InKeys(InRanking, total=False):
    """Also `attributes`, the names of those that each line has, or `*` for all."""

    attributes: Names


class InPeriods(TypedDict, total=False):
    """Which periods: only those that are `final`, only those `after` the one of this name, `limit` of them; with
    `winners` lines each, on boards with BY those of the key `by`, each with these `attributes`."""

    final: bool
    after: str
    limit: int
    winners: int
    by: str
    attributes: Names


class Item(TypedDict, total=False):
    """More about an increment: `by`, its key; `tie_break`, the second key that some boards need; `at`, its time (RFC 3339, or a `datetime` with a time zone); `id`, if it
    has one of its own; `value` in place of an amount; `retract`, to take it back; `attributes` to merge with those of the subject."""

    by: str
    at: str | datetime
    id: str
    value: str | int | Decimal | float | bool
    tie_break: int
    retract: bool
    attributes: Mapping[str, object]


class Over(InRanking, total=False):
    """The time that is counted: `last`, such as `30m`, or from `from_` on, as it was at `as_of`; `edge=weighted`."""

    last: str
    from_: str
    as_of: str
    edge: str


def of_board(name: str, *parts: str) -> str:
    return "/v1/boards/" + "/".join(map(_segment, (name, *parts)))


def _segment(text: str) -> str:
    if not text:
        raise ValueError("the name of a board, a subject or a key must not be empty")
    # `..` would be taken for the folder above.
    return text.replace(".", "%2E") if text in (".", "..") else quote(text, safe="")


def item(subject: str, amount: Amount | None, more: Item) -> dict[str, Any]:
    """Returns an increment as it is sent. Raises `TypeError` or `ValueError` with the name of what cannot be."""
    made = {"subject": _checked("subject", subject), **_members(more)}
    if amount is not None:
        if "value" in made:
            raise ValueError("an increment has an amount or a value, not both")
        made["amount"] = exact(amount, "amount")
    return made


def event(kind: str, fields: Mapping[str, object], more: Mapping[str, object]) -> dict[str, Any]:
    """Returns an event as it is sent. Raises what `item` does."""
    if not isinstance(fields, Mapping):
        raise TypeError(f"fields must be a dictionary, not {type(fields).__name__}")
    for name, value in fields.items():
        if isinstance(value, float | Decimal):
            exact(value, f"fields[{name!r}]")
    return {"type": _checked("type", kind), "fields": dict(fields), **_members(more)}


def _members(more: Mapping[str, object]) -> dict[str, object]:
    # An id of None would be none, and the item would count twice if it is sent twice.
    return {name: _checked(name, value) for name, value in more.items() if value is not None}


def _checked(name: str, value: Any) -> object:
    """Returns a member of an item as it is sent. The service says whether it is in order; what no service can take is an
    error here, where it was given."""
    if name == "value":
        number = value if isinstance(value, str | bool) else exact(value, name)
        # A float stays what it is: different values are told apart by their texts.
        return value if isinstance(value, float) else number
    if name == "retract" and isinstance(value, bool):
        return value
    if name == "tie_break":
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"tie_break must be a whole number, not {type(value).__name__}")
        return value
    if name == "attributes":
        print_attributes(value)
        return dict(value)
    if name == "at" and isinstance(value, datetime):
        if value.utcoffset() is None:
            raise ValueError("at: a datetime needs a time zone, such as datetime.now(timezone.utc)")
        return value.isoformat()
    if name not in ("subject", "by", "at", "id", "type"):
        raise TypeError(f"{name} must be True or False" if name == "retract" else f"there is no argument {name!r}")
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a text, not {type(value).__name__}")
    return value


def top(board: str, options: InPage | InLive) -> Call[schema.Ranking]:
    return Call("GET", of_board(board, "rankings"), options)


def lookup(board: str, subjects: Iterable[str], ranks: bool, options: Shown) -> Call[schema.LookupResult]:
    return Call("POST", of_board(board, "rankings", "lookup"), options, {"subjects": list(subjects), "ranks": ranks})


def best(board: str, keys: Iterable[str], limit: int, options: InKeys) -> Call[schema.Rankings]:
    return Call("POST", of_board(board, "rankings", "by"), options, {"keys": list(keys), "limit": limit})


def subject(board: str, name: str, options: Shown) -> Call[schema.Standing]:
    return Call("GET", of_board(board, "subjects", name), options)


def neighbors(board: str, name: str, radius: int, options: Shown) -> Call[schema.Neighbors]:
    return Call("GET", of_board(board, "subjects", name, "neighbors"), {"radius": radius, **options})


def count(board: str, name: str, options: Over) -> Call[schema.WindowValue]:
    params: dict[str, object] = dict(options)
    if "from_" in params:
        params["from"] = params.pop("from_")
    return Call("GET", of_board(board, "subjects", name, "window"), params)


def distribution(
    board: str, percentiles: Iterable[Amount], scores: Iterable[Amount], options: InPeriod
) -> Call[schema.Distribution]:
    # Without any, the parameter is left out: the service takes no empty list.
    lists = {"percentiles": _listed(percentiles) or None, "scores": _listed(scores) or None}
    return Call("GET", of_board(board, "distribution"), {**lists, **options})


def _listed(numbers: Iterable[Amount]) -> str:
    return ",".join(plain(exact(number)) for number in numbers)


def periods(board: str, options: InPeriods) -> Call[schema.PeriodList]:
    return Call("GET", of_board(board, "periods"), options)


def close_period(board: str, period: str | None) -> Call[schema.ClosedPeriod]:
    # Without a name, a second attempt after a lost answer would close the period that the first one began.
    return Call("POST", of_board(board, "close"), {"period": period}, is_repeatable=period is not None)


def tiers(board: str) -> Call[schema.Tiers]:
    return Call("GET", of_board(board, "tiers"))


def set_tiers(board: str, tiers: Iterable[Mapping[str, object]]) -> Call[schema.Tiers]:
    printed = ",".join(print_object(tier) for tier in tiers)
    return Call("PUT", of_board(board, "tiers"), body=f'{{"tiers":[{printed}]}}'.encode())


def keys(board: str, prefix: str, cursor: str | None, options: InRanking) -> Call[schema.KeyPage]:
    return Call("GET", of_board(board, "keys"), {"prefix": prefix, "cursor": cursor, "limit": 1000, **options})


def status(board: str) -> Call[schema.BoardStatus]:
    return Call("GET", of_board(board))


def define(board: str, definition: Mapping[str, object], dry_run: bool) -> Call[schema.DefineAnswer]:
    return Call("PUT", of_board(board), {"dry_run": dry_run or None}, definition)


def undefine(board: str) -> Call[schema.DefinedBoard]:
    # Of a second attempt after a lost answer one could not tell what the first one did.
    return Call("DELETE", of_board(board), is_repeatable=False)


def remove(board: str, name: str, by: str | None, all_keys: bool) -> Call[schema.Removal]:
    return Call("DELETE", of_board(board, "subjects", name), {"by": by, "all_keys": all_keys or None})


def remove_values(board: str, values: Sequence[str], by: str | None) -> Call[schema.ValueRemovalsReceipt]:
    return Call("POST", of_board(board, "removals"), {"by": by}, {"values": list(values)})


def hide(board: str, name: str, shadow: bool, by: str | None) -> Call[schema.Hiding]:
    return Call("PUT", of_board(board, "subjects", name, "hidden"), {"by": by}, {"shadow": shadow})


def show(board: str, name: str, by: str | None) -> Call[schema.Hiding]:
    return Call("DELETE", of_board(board, "subjects", name, "hidden"), {"by": by})


def freeze(board: str, name: str, by: str | None) -> Call[schema.Freezing]:
    return Call("PUT", of_board(board, "subjects", name, "frozen"), {"by": by})


def unfreeze(board: str, name: str, by: str | None) -> Call[schema.Freezing]:
    return Call("DELETE", of_board(board, "subjects", name, "frozen"), {"by": by})


def moderate_all(board: str, what: str, subjects: Iterable[Mapping[str, object]]) -> Call[schema.ModerationReceipt]:
    return Call("POST", of_board(board, what), body={"subjects": list(subjects)})


def moderated(board: str, what: str, prefix: str, by: str | None, cursor: str | None) -> Call[schema.ModeratedPage]:
    return Call("GET", of_board(board, what), {"prefix": prefix, "by": by, "cursor": cursor, "limit": 1000})


def attributes(board: str, name: str, by: str | None) -> Call[schema.SubjectAttributes]:
    return Call("GET", of_board(board, "subjects", name, "attributes"), {"by": by})


def change_attributes(
    method: Literal["PUT", "PATCH"], board: str, name: str, attributes: Mapping[str, object], by: str | None
) -> Call[schema.SubjectAttributes]:
    body = print_attributes(attributes).encode()
    return Call(method, of_board(board, "subjects", name, "attributes"), {"by": by}, body)


def remove_attributes(board: str, name: str, by: str | None) -> Call[schema.SubjectAttributes]:
    return Call("DELETE", of_board(board, "subjects", name, "attributes"), {"by": by})


def describe_all(board: str, subjects: Iterable[Mapping[str, object]]) -> Call[schema.ModerationReceipt]:
    printed = ",".join(print_item(subject) for subject in subjects)
    return Call("POST", of_board(board, "attributes"), body=f'{{"subjects":[{printed}]}}'.encode())


def described(board: str, prefix: str, cursor: str | None) -> Call[schema.DescribedPage]:
    return Call("GET", of_board(board, "attributes"), {"prefix": prefix or None, "cursor": cursor, "limit": 1000})


def boards() -> Call[schema.BoardList]:
    return Call("GET", "/v1/boards")


def query(queries: Sequence[Mapping[str, object]]) -> Call[schema.Answers]:
    return Call("POST", "/v1/query", body={"queries": queries})


def evaluate(rule: str, fields: Mapping[str, object]) -> Call[schema.Evaluations]:
    return Call("POST", "/v1/evaluate", body={"rule": rule, "fields": fields})
