"""Reading Markdown pages just well enough to test them: links, headings and fenced code."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Fence:
    """A fenced block: `language` is the first word after the backticks, `note` the rest of that line."""

    page: str
    line: int
    language: str
    note: str
    code: str

    @property
    def role(self) -> str | None:
        """Marked `service: ROLE`: it runs against a real service, with that role's key."""
        found = re.fullmatch(r"service:\s*(analyst|curator)", self.note)
        return found[1] if found else None

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[str]:
    """What people read: the top level, `docs/`, the client's page, and the arguments beside the code."""
    found = [*ROOT.glob("*.md"), *ROOT.glob("client/*.md")]
    found += [*ROOT.glob("docs/**/*.md"), *ROOT.glob("core/**/*.md")]
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


def fences(page: str) -> Iterator[Fence]:
    opened: tuple[int, str, str, str] | None = None
    body: list[str] = []
    for number, line in enumerate((ROOT / page).read_text().splitlines(), 1):
        mark = re.match(r"\s*(```+|~~~+)\s*([^`\s]*)\s*([^`]*)$", line)
        if opened is None:
            if mark:
                opened, body = (number, mark[1], mark[2], mark[3].strip()), []
        elif mark and mark[1].startswith(opened[1]) and not mark[2]:
            yield Fence(page, opened[0], opened[2], opened[3], "\n".join(body) + "\n")
            opened = None
        else:
            body.append(line)
    assert opened is None, f"{page}:{opened and opened[0]}: this fence is never closed"


def prose(page: str) -> str:
    """The page without its fenced blocks and inline code, where brackets are no links."""
    without_fences = re.sub(r"(?ms)^\s*(```+|~~~+).*?^\s*\1\s*$", "", (ROOT / page).read_text())
    return re.sub(r"`+[^`\n]*`+", "", without_fences)


def links(page: str) -> list[str]:
    return re.findall(r"\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)", prose(page))


def anchors(page: str) -> set[str]:
    """The anchors of a page's headings, as code hosts make them."""
    headings = re.findall(r"(?m)^#{1,6}\s+(.+?)\s*#*$", (ROOT / page).read_text())
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


def commands(script: str) -> Iterator[list[str]]:
    """The words of each command of a shell block, without comments, prompts and leading assignments."""
    for line in re.sub(r"\\\n\s*", " ", script).splitlines():
        words = line.removeprefix("$ ").split()
        while words and re.match(r"[A-Z_][A-Z0-9_]*=", words[0]):
            words.pop(0)
        if words and not words[0].startswith("#"):
            yield words
