"""Every program of docs/client-library.md, run as it stands against a real broker with somebody at it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import broker.client
from broker.client import aio, outcomes
from broker.client.outcomes import NotCompleted
from broker.credentials import Credential, write_credential
from tests.client.conftest import SCOPES
from tests.client.desk import Desk
from tests.support.broker_process import ROOT, BrokerProcess, environment_of

PAGE = (ROOT / "docs" / "client-library.md").read_text()
PROGRAMS = re.findall(r"^```python\n(.*?)^```\n(?:.*?)^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
ANSWERS = {
    "Deploy to production?": {"choose": "ship"},
    "Delete the old backups?": {"choose": "yes"},
    "What shall the release be called?": {"write": "Rex"},
    "When shall I run the migration?": {"choose": "night"},
    "Publish the report?": {"choose": "yes"},
}


@pytest.fixture
def environment(broker: BrokerProcess, credential: object, desk: Desk) -> dict[str, str]:
    """The surroundings of a program whose user has paired it as the page says."""
    for title, part in ANSWERS.items():
        desk.on(title, **part)
    surroundings = environment_of(broker.folder)
    client_id, key = broker.credential(*SCOPES)
    folder = Path(surroundings["XDG_CONFIG_HOME"]) / "companion" / "credentials"
    write_credential(folder, "my-agent", Credential(client_id, SCOPES, key))
    return surroundings


@pytest.mark.parametrize(("program", "printed"), PROGRAMS, ids=range(len(PROGRAMS)))
def test_a_program_of_the_page_prints_what_the_page_says(
    program: str, printed: str, environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "program.py").write_text(program)
    ran = subprocess.run(
        (sys.executable, "-W", "error", tmp_path / "program.py"),
        check=False,
        env={**environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (ran.stdout, ran.stderr) == (printed, "")


def test_no_program_of_the_page_was_left_out() -> None:
    assert len(PROGRAMS) == PAGE.count("```python") == PAGE.count("```text") > 5


def test_the_page_names_every_way_in_which_nobody_answers() -> None:
    kinds = {name for name, kind in vars(outcomes).items() if _is_kind(kind)}
    assert {name for name in kinds if f"`{name}`" not in PAGE} == set()


def _is_kind(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, NotCompleted)


def test_the_page_names_every_method_of_a_companion() -> None:
    named = {name for pair in re.findall(r"`(\w+)`|companion\.(\w+)\(", PAGE) for name in pair}
    methods = {name for name in vars(broker.client.Companion) if not name.startswith("_")}
    assert methods - {"open", "close"} <= named
    assert methods - {"close"} <= set(vars(aio.Companion))
