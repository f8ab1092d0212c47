"""Checks links: between the documents, and those that sources, settings and web pages name in texts."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from markdown import links, slug_file

# A document that a text names, such as `docs/boards.md#several-windows`.
NAMED = re.compile(
    r"(?<![\w/.-])((?:docs|clients/\w+|examples/\w+)/[\w.-]+\.md"
    r"|(?:README|CONTRIBUTING|SECURITY|CHANGELOG)\.md)(#[\w-]+)?"
)
SOURCES = (".rs", ".ts", ".tsx", ".mjs", ".js", ".py", ".toml", ".lua", ".sh", ".yml", ".yaml", ".json", ".html")


def check_links(root: Path) -> tuple[int, list[str]]:
    """Returns the number of links, and what is wrong with some."""
    list_files = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(list_files, cwd=root, check=True, capture_output=True, text=True).stdout.split("\n")
    known: dict[Path, set[str]] = {}
    count, wrong = 0, []

    def check(place: str, target: Path, anchor: str) -> None:
        nonlocal count
        count += 1
        if not target.exists():
            wrong.append(f"{place}: there is no {target.relative_to(root) if target.is_relative_to(root) else target}")
        elif anchor and target.suffix == ".md" and anchor not in slug_file(target, known):
            wrong.append(f"{place}: {target.relative_to(root)} has no heading for #{anchor}")

    for name in files:
        path = root / name
        if path.suffix == ".md" and path.is_file():
            for line, target in links(path.read_text()):
                if re.match(r"[a-z]+:|//", target):
                    continue
                file, _, anchor = target.partition("#")
                check(f"{name}:{line}", (path.parent / file).resolve() if file else path, anchor)
        elif path.suffix in SOURCES and "web/built/" not in name and path.is_file():
            text = path.read_text(errors="replace")
            for match in NAMED.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                check(f"{name}:{line}", root / match[1], (match[2] or "")[1:])
    return count, wrong
