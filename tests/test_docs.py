from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import get_args

import click
import pytest

from broker.cli.main import companion
from protocols.control.engine import METHODS
from protocols.control.monitor import Kind
from tests.generated_docs import current
from tests.support.broker_process import environment_of, write_config

ROOT = Path(__file__).parents[1]
SCRIPTED = ROOT / "fixtures" / "presenters" / "scripted.py"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
SHELL = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)[^)]*\)")


def shell_lines(page: Path) -> list[str]:
    return [line for block in SHELL.findall(page.read_text()) for line in block.splitlines()]


def commands(page: Path) -> list[list[str]]:
    lines = (line.removeprefix(".venv/bin/") for line in shell_lines(page))
    return [shlex.split(line)[1:] for line in lines if line.startswith("companion ")]


def targets() -> set[str]:
    return set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_that_a_page_shows_exists_and_takes_its_options(page: Path) -> None:
    for words in commands(page):
        parse(companion, words)


def parse(command: click.Command, words: list[str]) -> None:
    context = command.make_context(command.name, list(words), resilient_parsing=False)
    while isinstance(command, click.Group):
        name, found, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        assert found is not None, words
        command, context = found, found.make_context(name, list(rest), parent=context)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_make_target_that_a_page_names_exists(page: Path) -> None:
    named = set(re.findall(r"`make ([a-z]+)`|^make ([a-z]+)$", page.read_text(), re.MULTILINE))
    assert {name for pair in named for name in pair if name} <= targets()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_file_leads_somewhere(page: Path) -> None:
    for link in LINK.findall(page.read_text()):
        assert (page.parent / link).exists(), link


@pytest.mark.requirement("CP-2.2")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_is_generated_on_a_page_is_current(page: Path) -> None:
    assert current(page.read_text()) == page.read_text(), "run `make docs`"


def test_the_readme_names_exactly_two_set_up_commands() -> None:
    section = re.search(r"## Set up\n(.*?)\n## ", (ROOT / "README.md").read_text(), re.DOTALL)
    assert section is not None
    assert [line for block in SHELL.findall(section[1]) for line in block.splitlines()] == [
        "make demo",
        "make test",
    ]


@pytest.mark.requirement("CP-7.7")
def test_a_conformance_run_is_said_to_hold_for_one_version_and_to_certify_nothing() -> None:
    for page in (ROOT / "fixtures" / "conformance" / "README.md", ROOT / "docs" / "companion.md"):
        text = " ".join(page.read_text().split())
        for words in ("this version", "these conditions"):
            assert words in text, (page.name, words)
    for page in PAGES:
        assert not re.search(r"\b(is|are|been) certified\b|\bcertified by\b", page.read_text()), page.name


@pytest.mark.requirement("CP-5.11")
def test_the_limits_of_a_local_key_are_said_plainly() -> None:
    for page in (ROOT / "README.md", ROOT / "docs" / "authentication.md"):
        text = " ".join(page.read_text().split())
        for words in ("the programs of one user apart", "account", "offline"):
            assert words in text, (page.name, words)


@pytest.mark.requirement("CP-1.3")
def test_the_host_on_the_page_about_embedding_runs_as_it_stands(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "embedding.md").read_text()
    (program,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "host.py").write_text(program)
    script = tmp_path / "script.json"
    script.write_text(
        '{"arming_ms": 10, "prompts": [{"label": "Example Host", "do": "choose", "option": "yes"}]}'
    )
    with tempfile.TemporaryDirectory(prefix="cb-") as folder:
        write_config(Path(folder), "[presenter]\narming_ms = 0\n")
        presenter = shlex.join(("exec:" + sys.executable, str(SCRIPTED), str(script)))
        ran = subprocess.run(
            (sys.executable, tmp_path / "host.py"),
            check=False,
            env={**environment_of(Path(folder)), "COMPANION_PRESENTER": presenter, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert ran.returncode == 0, ran.stderr
    (said,) = re.findall(r"it prints `(.*?)`", page)
    assert ran.stdout == f"{said}\n"


def test_the_page_about_the_control_protocol_names_every_method_and_every_event() -> None:
    page = (ROOT / "docs" / "control.md").read_text()
    methods = page[page.index("## Methods") : page.index("## Clearing")]
    rows = [line.split("|")[1] for line in methods.splitlines() if line.startswith("| `")]
    assert {name for row in rows for name in re.findall(r"`(.+?)`", row)} == set(METHODS)
    monitoring = page[page.index("## Monitoring") :]
    rows = [line.split("|")[1] for line in monitoring.splitlines() if line.startswith("| `")]
    assert [row.strip(" `") for row in rows] == list(get_args(Kind))
