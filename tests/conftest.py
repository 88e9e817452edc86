"""Holds every test to the requirements page: an id that it does not list stops the run at collection."""

from __future__ import annotations

import pytest

from tests.requirements_report import PAGE, cited_ids, read_rows, unknown_citations


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse unknown ids before deselection, so that `-k` hides none."""
    cited = {item.nodeid: cited_ids(item) for item in items}
    if wrong := unknown_citations(cited, read_rows(PAGE.read_text(encoding="utf-8"))):
        raise pytest.UsageError(*wrong)
