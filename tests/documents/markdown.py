"""Reads Markdown: blocks of code with the comments before them, headings and links."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Block:
    """A block of code."""

    document: str
    line: int
    language: str
    lines: list[str]
    # What comments of the form `<!-- example: … -->` directly before the block say.
    notes: list[str] = field(default_factory=list)

    @property
    def place(self) -> str:
        return f"{self.document}:{self.line}"

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


def blocks(document: str, text: str) -> list[Block]:
    """Returns the blocks of code. An `<!-- example: … -->` that is not directly before one is an error."""
    found: list[Block] = []
    notes: list[str] = []
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        fence = re.match(r"( *)```+(\S*)\s*$", lines[at])
        comment = re.match(r" *<!-- example: ?(.*)$", lines[at])
        if fence:
            indent, begun = fence[1], at + 1
            end = next((n for n in range(begun, len(lines)) if re.match(r" *```+\s*$", lines[n])), None)
            if end is None:
                raise ValueError(f"{document}:{begun}: the block of code does not end")
            content = [line.removeprefix(indent) for line in lines[begun:end]]
            # What follows a comma is for rustdoc.
            found.append(Block(document, begun + 1, fence[2].partition(",")[0], content, notes))
            notes = []
            at = end
        elif comment:
            note = comment[1]
            while "-->" not in note:
                at += 1
                note += "\n" + lines[at]
            notes.append(note.partition("-->")[0].strip())
        elif lines[at].strip() and notes:
            raise ValueError(f"{document}:{at + 1}: '<!-- example: …' stands directly before a block of code")
        at += 1
    return found


def without_code(text: str) -> str:
    """Blanks blocks and spans of code, and comments. Lines keep their numbers."""
    def blank(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", match[0])

    text = re.sub(r"^ *```.*?^ *```+ *$", blank, text, flags=re.M | re.S)
    text = re.sub(r"<!--.*?-->", blank, text, flags=re.S)
    return re.sub(r"(`+)(?:(?!\n\n).)+?\1(?!`)", blank, text, flags=re.S)


def anchors(text: str) -> set[str]:
    """Returns the anchors of the headings, as GitHub makes them, and those that are written as `<a id=…>`."""
    found: set[str] = set()
    in_block = False
    for line in text.split("\n"):
        if re.match(r" *```", line):
            in_block = not in_block
        heading = None if in_block else re.match(r"#{1,6} +(.*?)(?: +#+)? *$", line)
        if heading:
            title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1])
            slug = re.sub(r"[^\w\- ]", "", title.lower().replace("`", "")).replace(" ", "-")
            number = 0
            while (unique := slug if number == 0 else f"{slug}-{number}") in found:
                number += 1
            found.add(unique)
        found.update(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", line))
    return found


def links(text: str) -> list[tuple[int, str]]:
    """Returns the targets of links and images, with the line of each."""
    text = without_code(text)
    # The texts of links may be spans of code, and may go over the end of a line.
    targets = [(m.start(), m[1]) for m in re.finditer(r"\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)", text)]
    targets += [(m.start(), m[1]) for m in re.finditer(r"(?:src|srcset|href)=\"([^\"]+)\"", text)]
    targets += [(m.start(), m[1]) for m in re.finditer(r"^\[[^\]]+\]: +(\S+)", text, flags=re.M)]
    return [(text.count("\n", 0, position) + 1, target) for position, target in sorted(targets)]


def slug_file(path: Path, known: dict[Path, set[str]]) -> set[str]:
    """Returns the anchors of a file, which `known` remembers."""
    if path not in known:
        known[path] = anchors(path.read_text())
    return known[path]
