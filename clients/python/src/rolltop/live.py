"""Live rankings: the state of one, changed by the events of a stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from . import schema
from .errors import RolltopError
from .numbers import parse


class Lines:
    """Puts the lines of a stream of server-sent events together: https://html.spec.whatwg.org/#event-stream-interpretation"""

    def __init__(self) -> None:
        self._event, self._data, self._id = "message", list[str](), ""

    def read(self, line: str) -> tuple[str, str, str] | None:
        """Takes a line without its end. Returns event, data and id if it ends an event."""
        if line == "":
            event, data = self._event, "\n".join(self._data)
            has_data = bool(self._data)
            self._event, self._data = "message", []
            return (event, data, self._id) if has_data else None
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._event = value
        elif name == "data":
            self._data.append(value)
        elif name == "id":
            self._id = value
        return None


class LiveRanking:
    """The first lines of a ranking as a stream describes them."""

    def __init__(self) -> None:
        self.ranking: schema.Ranking | None = None
        # What to send when the stream is opened again, so that nothing comes that has not changed.
        self.last_id = ""

    def take(self, event: str, data: str, event_id: str) -> schema.Ranking | None:
        """Returns the ranking after an event, or None if it is the same. Raises the problem of a board that is gone."""
        self.last_id = event_id
        said: dict[str, Any] = parse(data)
        if event == "page":
            self.ranking = cast(schema.Ranking, said)
            return self.ranking
        if event == "problem":
            error = RolltopError(said["code"], said.get("detail", ""), status=said.get("status"), problem=said)
            if error.is_transient:
                return None
            raise error
        if event != "change" or self.ranking is None:
            return None
        # Each line has a subject: only what is current is followed, and subjects are removed from lines of final periods.
        rows, gone = said.pop("rows"), set(said.pop("gone"))
        moved = gone | {row["subject"] for row in rows}
        items = [line for line in self.ranking["items"] if line["subject"] not in moved]
        for row in rows:
            items.insert(
                row["position"] - 1, cast(schema.RankingEntry, {k: v for k, v in row.items() if k != "position"})
            )
        self.ranking = cast(schema.Ranking, {**self.ranking, **said, "items": items})
        return self.ranking


def export_lines(text: bytes) -> tuple[Iterator[schema.RankingEntry], schema.ExportEnd]:
    """Returns the lines of a piece of an export, and what its last line says. Raises its problem."""
    lines = text.splitlines()
    try:
        end: Any = parse(lines[-1]) if lines else None
    except ValueError:
        end = None
    if not isinstance(end, dict) or "complete" not in end:
        raise RolltopError("interrupted", "an export ended early")
    problem = end.get("problem")
    if problem:
        raise RolltopError(problem["code"], problem.get("detail", ""), status=problem.get("status"), problem=problem)
    return (parse(line) for line in lines[:-1]), cast(schema.ExportEnd, end)
