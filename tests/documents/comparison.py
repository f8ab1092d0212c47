"""Compares an output with the one that a document shows.

Everything must be equal, but for what is different in each run:

    a time              any time; where that of the document is a full minute, hour or day, it must be one too
    "from" with "to"    two times that are as far apart as those of the document
    a cursor, an id     any other: AQ… from 22 characters on, 16 hexadecimal digits, 8 with a letter, a UUID
    the name of a backup, such as 20261121T031500123Z
    a number with a unit of bytes, seconds or a rate, such as `0.1 s`, and a place, such as `byte 12`
    …                   in the document: any text; as a line of its own: any lines

A cursor, an id, the name of a backup and a word that contains `…` are learned: later commands of the document, which
use what it shows, are run with what the program has answered.
"""

from __future__ import annotations

import re
from datetime import datetime

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3})?Z"
VARYING = re.compile(
    rf"(?P<time>{TIME})"
    r"|(?P<cursor>\bAQ[\w-]{20,})"
    r"|(?P<uuid>\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b)"
    r"|(?P<long>\b[0-9a-f]{16}\b)"
    r"|(?P<short>\b(?=[0-9]*[a-f])[0-9a-f]{8}\b)"
    r"|(?P<backup>\b\d{8}T\d{9}Z\b)"
    r"|(?P<number>(?<=\bbyte )\d+| *\b\d+(?:\.\d+)?(?= (?:bytes|s|ms|MB|lines/s)\b))"
    r"|(?P<any>[^\s\"'=:,(]*…[^\s\"',)]*)"
)
PATTERNS = {
    "cursor": r"AQ[\w-]{20,}",
    "uuid": r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "long": r"[0-9a-f]{16}",
    "short": r"[0-9a-f]{8}",
    "backup": r"\d{8}T\d{9}Z",
    "number": r" *\d+(?:\.\d+)?",
}
SPAN = re.compile(rf'"from":"({TIME})","to":"({TIME})"')


def time_pattern(shown: str) -> str:
    """Returns a pattern for times that are at least as round as the one shown."""
    day, hour, minute = r"\d{4}-\d\d-\d\dT", r"\d\d:", r"\d\d:"
    if shown.endswith("T00:00:00Z"):
        return day + "00:00:00Z"
    if shown.endswith(":00:00Z"):
        return day + hour + "00:00Z"
    if shown.endswith(":00Z"):
        return day + hour + minute + "00Z"
    return TIME


def pattern_of(line: str) -> tuple[str, list[str]]:
    """Returns the regular expression for a line of a document, and the texts that its groups stand for."""
    pattern, shown, at = "", [], 0
    for match in VARYING.finditer(line):
        pattern += re.escape(line[at : match.start()])
        text, kind = match[0], str(match.lastgroup)
        if kind == "time":
            part = time_pattern(text)
        elif kind == "any":
            pieces = (re.sub(r"[0-9a-f]{16}", "[0-9a-f]{16}", re.escape(piece)) for piece in text.split("…"))
            part = ".*?".join(pieces)
        else:
            part = PATTERNS[kind]
        pattern += f"({part})"
        shown.append(text)
        at = match.end()
    return pattern + re.escape(line[at:]), shown


def spans(line: str) -> list[float]:
    """Returns the lengths of the windows that a line names."""
    return [(datetime.fromisoformat(b) - datetime.fromisoformat(a)).total_seconds() for a, b in SPAN.findall(line)]


def learned(shown: str) -> bool:
    """Whether later commands mean by this text what the program answered in its place."""
    kind = VARYING.fullmatch(shown)
    group = kind.lastgroup if kind else None
    if group == "any":
        return len(shown.replace("…", "")) >= 3
    return group in ("cursor", "uuid", "long", "short", "backup")


def compare_line(expected: str, actual: str, learn: dict[str, str]) -> str | None:
    """Returns what is wrong with a line."""
    pattern, shown = pattern_of(expected)
    match = re.fullmatch(pattern, actual)
    if not match:
        return first_difference(expected, actual)
    if "…" not in expected and spans(expected) != spans(actual):
        return f"the window is of a different length:\n    shown:  {expected}\n    actual: {actual}"
    for text, group in zip(shown, match.groups(), strict=True):
        if learned(text):
            learn[text] = group
    return None


def first_difference(expected: str, actual: str) -> str:
    """Describes the first place where a line differs from the one shown."""
    # The longest beginning of the expected line that is a beginning of the actual one.
    fits, too_long = 0, len(expected) + 1
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        if re.match(pattern_of(expected[:middle])[0], actual):
            fits = middle
        else:
            too_long = middle
    matched = re.match(pattern_of(expected[:fits])[0], actual)
    reached = matched.end() if matched else 0

    def around(text: str, at: int) -> str:
        begin = max(0, at - 50)
        return ("…" if begin else "") + text[begin : at + 70] + ("…" if at + 70 < len(text) else "")

    return f"    shown:  {around(expected, fits)}\n    actual: {around(actual, reached)}"


def compare(expected: list[str], actual: list[str], learn: dict[str, str]) -> str | None:
    """Returns what is wrong with an output, or None. Adds to `learn` what shown texts stand for."""
    expected = [line.rstrip() for line in expected]
    actual = [line.rstrip() for line in actual]
    for lines in (expected, actual):
        while lines and not lines[-1]:
            lines.pop()
    at = 0
    for number, line in enumerate(expected):
        if line.strip() == "…":
            rest = expected[number + 1 :]
            if not rest:
                return None
            while at < len(actual) and compare_line(rest[0], actual[at], {}) is not None:
                at += 1
            continue
        if at >= len(actual):
            return f"a line is missing:\n    shown:  {line}\n    actual: {actual}"
        wrong = compare_line(line, actual[at], learn)
        if wrong:
            return wrong
        at += 1
    if at < len(actual):
        return f"there is a line more:\n    actual: {actual[at][:300]}"
    return None


def compare_json(expected: list[str], actual: list[str], learn: dict[str, str]) -> str | None:
    """The same for JSON that a document shows with line breaks, which the program does not write."""
    return compare(["".join(line.strip() for line in expected)], ["".join(line.strip() for line in actual)], learn)
