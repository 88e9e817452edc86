"""Which rows of docs/requirements.md do the tests cite, and which not?

A test cites rows with `@pytest.mark.requirement("LP-8", "G20")`. `tests/conftest.py` refuses ids that the
page does not hold; `make requirements` collects the tests without running them and prints what none cites.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent / "docs" / "requirements.md"
ROW = re.compile(r"- (?P<id>CP-\d+\.\d+|LP-\d+|G\d{2}) (?P<text>.+)")


def read_rows(page: str) -> dict[str, str]:
    """The page's rows in its order, id to text. A list item that is no row, or an id twice: ValueError."""
    rows: dict[str, str] = {}
    for line in page.splitlines():
        if not line.startswith("- "):
            continue
        match = ROW.fullmatch(line)
        if match is None or match["id"] in rows:
            raise ValueError(f"no row, or a second one of its id: {line}")
        rows[match["id"]] = " ".join(match["text"].split())
    return rows


def cited_ids(item: pytest.Item) -> set[str]:
    """The ids that the marks on a test, its class and its module cite."""
    return {id for mark in item.iter_markers("requirement") for id in mark.args}


def unknown_citations(cited: Mapping[str, set[str]], rows: Iterable[str]) -> list[str]:
    """One line for each test (node id to cited ids) that cites an id outside `rows`."""
    known = set(rows)
    return [
        f"{test} cites {', '.join(sorted(ids - known))}, not in docs/requirements.md"
        for test, ids in cited.items()
        if ids - known
    ]


def report(rows: Mapping[str, str], cited: set[str]) -> str:
    """The rows that no test cites, in the page's order, closed by a line of counts."""
    open_rows = [f"{id:<8} {text}" for id, text in rows.items() if id not in cited]
    counts = f"{len(rows) - len(open_rows)} of {len(rows)} requirements cited by a test, {len(open_rows)} not"
    return "\n".join([*open_rows, counts])


class Collector:
    """A pytest plugin that keeps what the collected tests cite."""

    def __init__(self) -> None:
        self.cited: set[str] = set()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.cited.update(*map(cited_ids, session.items))


def main() -> int:
    """Print the report. Gaps are no fault: 0. Tests that cannot be collected are: pytest's own code."""
    collector = Collector()
    with contextlib.redirect_stdout(io.StringIO()) as output:
        code = pytest.main(["--collect-only", "-q"], plugins=[collector])
    if code != pytest.ExitCode.OK:
        print(output.getvalue(), file=sys.stderr)
        return int(code)
    print(report(read_rows(PAGE.read_text(encoding="utf-8")), collector.cited))
    return 0


if __name__ == "__main__":
    sys.exit(main())
