"""The requirements page can be read, and no test cites what it does not hold."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.requirements_report import PAGE, read_rows, report, unknown_citations

ROWS = {"LP-7": "M an app key", "LP-8": "M limits", "G20": "two holders"}


def run_pytest(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run pytest on a folder outside the checkout, under the checkout's own collection rule."""
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "--rootdir", str(folder)]
    config = ["-c", str(PAGE.parent.parent / "pyproject.toml"), *options, str(folder)]
    return subprocess.run(
        [*command, *config], cwd=PAGE.parent.parent, capture_output=True, text=True, check=False
    )


def write_test(folder: Path, id: str) -> None:
    (folder / "test_cites.py").write_text(
        f"import pytest\n\n@pytest.mark.requirement({id!r})\ndef test_cites():\n    pass\n", encoding="utf-8"
    )


def test_the_page_holds_every_series() -> None:
    rows = read_rows(PAGE.read_text(encoding="utf-8"))
    assert {id for id in rows if id.startswith("LP-")} == {f"LP-{n}" for n in range(1, 13)}
    assert {id for id in rows if id.startswith("G")} == {f"G{n:02}" for n in range(1, 25)}
    assert {id.split(".")[0] for id in rows if id.startswith("CP-")} == {f"CP-{n}" for n in range(1, 8)}


def test_rows_keep_their_order_and_text() -> None:
    page = "# Title\n- LP-8 M  Limits: 60 s.\nprose\n- G01    framing: one line\n"
    assert list(read_rows(page).items()) == [("LP-8", "M Limits: 60 s."), ("G01", "framing: one line")]


@pytest.mark.parametrize(
    "page", ["- LP-8 M  a\n- LP-8 M  b\n", "- LP-x M  a\n", "- plain item\n", "- G1 a\n"]
)
def test_a_page_with_a_broken_row_is_refused(page: str) -> None:
    with pytest.raises(ValueError, match="no row"):
        read_rows(page)


def test_the_report_lists_what_nobody_cites() -> None:
    assert report(ROWS, {"LP-7", "G20"}) == "LP-8     M limits\n2 of 3 requirements cited by a test, 1 not"


def test_only_unknown_ids_are_complained_about() -> None:
    assert unknown_citations({"a": {"LP-8", "G20"}, "b": set()}, ROWS) == []
    assert unknown_citations({"a": {"LP-8", "LP-99"}}, ROWS) == ["a cites LP-99, not in docs/requirements.md"]


def test_a_run_with_an_unknown_id_fails_at_collection(tmp_path: Path) -> None:
    write_test(tmp_path, "LP-99")
    run = run_pytest(tmp_path, "-k", "nothing_of_that_name")
    assert run.returncode == pytest.ExitCode.USAGE_ERROR
    assert "LP-99, not in docs/requirements.md" in run.stderr


def test_a_run_with_a_known_id_passes(tmp_path: Path) -> None:
    write_test(tmp_path, "LP-8")
    assert run_pytest(tmp_path).returncode == pytest.ExitCode.OK
