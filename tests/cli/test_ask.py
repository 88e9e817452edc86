"""ask, confirm, input and notify: what is printed, the exit codes, and what a signal does to a standing question."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import CommandLine, one_value
from tests.cli.person import CLOSED, LEFT, TEXT, Person
from tests.cli.test_pair import profile_file
from tests.cli.test_restart import pair
from tests.support.broker_process import running_broker
from tests.support.lines import until

OPTIONS = ("--option", "allow=Allow", "--option", "deny=Deny")


def open_requests(companion: CommandLine) -> int:
    count: int = companion.json("status")["openRequests"]
    return count


# -- answers -------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-6.3", "CP-6.5")
def test_the_chosen_id_is_printed_and_nothing_else(companion: CommandLine) -> None:
    ended = companion("ask", "Ship?", "--option", "yes=Ship it = now", "--option", "no=Wait")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "yes\n", "")


@pytest.mark.requirement("CP-6.3")
def test_json_prints_the_last_snapshot(companion: CommandLine) -> None:
    ended = companion.json("ask", "Ship?", *OPTIONS, "--task-id", "t1")
    assert (ended["state"], ended["result"]) == ("completed", {"selectedId": "allow"})
    assert ended["taskId"] == "t1"
    assert companion.json("requests", "get", ended["requestId"]) == ended


def test_a_label_may_be_its_own_id(companion: CommandLine, person: Person) -> None:
    assert companion.inside("ask", "Which?", "--option", "Tea", "--option", "Coffee").stdout == "Tea\n"
    assert person.seen[-1]["options"][1] == {"id": "Coffee", "label": "Coffee"}


@pytest.mark.requirement("CP-6.5")
@pytest.mark.parametrize(
    ("answer", "options", "exit_code", "printed"),
    [
        ("yes", (), 0, "yes\n"),
        ("no", (), 0, "no\n"),
        ("yes", ("--only-yes",), 0, "yes\n"),
        ("no", ("--only-yes",), 1, ""),
    ],
)
def test_confirm_prints_yes_or_no(
    companion: CommandLine,
    person: Person,
    answer: str,
    options: tuple[str, ...],
    exit_code: int,
    printed: str,
) -> None:
    person.answers["Delete?"] = answer
    ended = companion.inside("confirm", "Delete?", *options)
    assert (ended.returncode, ended.stdout) == (exit_code, printed)


@pytest.mark.requirement("CP-6.6")
def test_a_no_that_is_an_exit_code_has_a_code_too(companion: CommandLine, person: Person) -> None:
    person.answers["Delete?"] = "no"
    ended = companion.json("confirm", "Delete?", "--only-yes", "--no", "Keep", exit_code=1)
    assert (ended["error"]["code"], ended["error"]["retryable"]) == ("DECLINED", False)
    assert ended["request"]["result"] == {"selectedId": "no"}
    assert person.seen[-1]["options"][1] == {"id": "no", "label": "Keep"}


@pytest.mark.requirement("CP-6.5")
def test_input_prints_what_was_written(companion: CommandLine, person: Person) -> None:
    ended = companion.inside("input", "Name?", "--placeholder", "a name", "--max-length", "20")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"{TEXT}\n", "")
    assert person.seen[-1]["input"] == {"placeholder": "a name", "multiline": False, "maxLength": 20}


@pytest.mark.requirement("G08")
def test_a_program_gets_the_text_as_it_was_written(companion: CommandLine, person: Person) -> None:
    written = " två\n rader\x1b[2J\u202e "
    person.answers["Text?"] = written
    assert companion.inside("input", "Text?", "--multiline").stdout == f"{written}\n"
    assert companion.json("input", "Text?", "--multiline")["result"] == {"text": written}


@pytest.mark.requirement("CP-6.5")
def test_notify_is_accepted_and_can_be_waited_for(companion: CommandLine, person: Person) -> None:
    options = ("--title", "Build", "--tone", "success", "--display", "1", "--timeout", "30")
    ended = companion.inside("notify", "It has passed.", *options)
    request_id = ended.stdout.removesuffix("\n")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert companion.json("requests", "wait", request_id)["reason"] == "presented"
    shown = person.seen[-1]
    assert (shown["title"], shown["text"], shown["tone"]) == ("Build", "It has passed.", "success")


@pytest.mark.requirement("CP-4.1", "CP-4.2")
def test_the_same_key_is_the_same_question(companion: CommandLine) -> None:
    asked = ("ask", "Once?", *OPTIONS, "--idempotency-key", "ask-once")
    assert companion.json(*asked) == companion.json(*asked)


# -- the given cases -----------------------------------------------------------------------------------------------


@pytest.mark.requirement("G14", "CP-3.5", "CP-3.7", "CP-6.5", "CP-6.6")
def test_nobody_answered_is_not_no(companion: CommandLine, person: Person) -> None:
    """The four ends are told apart by exit code, code and reason, and only an answer carries an option's id."""
    person.answers["No?"] = "deny"
    answered = companion.json("ask", "No?", *OPTIONS)
    expired = companion.json("ask", LEFT, *OPTIONS, "--timeout", "1", exit_code=6)
    closed = companion.json("ask", CLOSED, *OPTIONS, exit_code=6)
    with companion.start("ask", LEFT, *OPTIONS, "--json") as asking:
        until(lambda: open_requests(companion) == 1)
        request_id = person.seen[-1]["requestId"]
        companion.json("requests", "cancel", request_id)
        stdout, _ = asking.communicate(timeout=20)
    withdrawn = one_value(stdout)
    assert answered["result"] == {"selectedId": "deny"}
    assert [told(one) for one in (expired, closed, withdrawn)] == [
        ("EXPIRED", "expired", "deadline", None),
        ("CANCELLED", "cancelled", "dismissed_by_user", None),
        ("CANCELLED", "cancelled", "cancelled_by_client", None),
    ]
    assert asking.returncode == 6


def told(ended: Any) -> tuple[str, str, str, Any]:
    request = ended["request"]
    return ended["error"]["code"], request["state"], request["reason"], request["result"]


@pytest.mark.requirement("G14")
def test_without_json_an_end_without_an_answer_prints_nothing(companion: CommandLine) -> None:
    ended = companion.inside("ask", LEFT, *OPTIONS, "--timeout", "1")
    assert (ended.returncode, ended.stdout) == (6, "")
    assert ended.stderr == "companion: the request is expired (deadline) [EXPIRED]\n"


@pytest.mark.requirement("G03")
def test_the_longest_answer_is_delivered_whole(companion: CommandLine, person: Person) -> None:
    longest = "\N{CAT FACE}" * 3_999 + "\x00"
    person.answers["Long?"] = longest
    assert companion("input", "Long?", "--max-length", "4000").stdout == f"{longest}\n"
    ended = companion.json("input", "Long?", "--max-length", "4000")
    assert ended["result"] == {"text": longest}
    assert companion.json("requests", "get", ended["requestId"]) == ended


@pytest.mark.requirement("G03", "CP-6.6")
@pytest.mark.parametrize(
    ("command", "field", "limit"),
    [
        (("ask", "T" * 161, *OPTIONS), "params.title", 160),
        (("ask", "T", "--option", "a" * 65, "--option", "b"), "params.options.0.id", 64),
        (("ask", "T", "--option", f"a={'L' * 25}", "--option", "b"), "params.options.0.label", 24),
        (("input", "T", "--placeholder", "p" * 161), "params.placeholder", 160),
        (("input", "T", "--max-length", "4001"), "params.maxLength", 4000),
        (("notify", "t" * 2001), "params.text", 2000),
        (("notify", "t", "--title", ""), "params.title", 1),
    ],
)
def test_a_text_that_is_too_long_is_refused_with_the_limit(
    companion: CommandLine, command: tuple[str, ...], field: str, limit: int
) -> None:
    error = companion.json(*command, exit_code=2)["error"]
    assert (error["code"], error["field"], error["limit"]) == ("INVALID_PARAMS", field, limit)


@pytest.mark.requirement("G03")
def test_too_long_for_any_message_is_refused_with_the_limit(companion: CommandLine) -> None:
    error = companion.json("ask", "T" * 70_000, *OPTIONS, exit_code=2)["error"]
    assert error["limitBytes"] == 65_536


@pytest.mark.requirement("G09", "CP-3.8")
@pytest.mark.parametrize(
    ("seconds", "limit"), [("2592000", 3_600_000), ("2147483.648", 3_600_000), ("0", 1_000), ("-1", 1_000)]
)
def test_a_timeout_out_of_range_is_refused_with_the_limit(
    companion: CommandLine, seconds: str, limit: int
) -> None:
    for given in (("--timeout", seconds), (f"--timeout={seconds}",)):
        error = companion.json("ask", "T", *OPTIONS, *given, exit_code=2)["error"]
        assert (error["code"], error["field"], error["limit"]) == ("INVALID_PARAMS", "timeoutMs", limit)


@pytest.mark.requirement("G09", "CP-6.3")
@pytest.mark.parametrize("seconds", ["nan", "inf", "-inf", "1e300", "soon", ""])
def test_a_timeout_that_is_no_number_of_seconds_is_2(lonely: CommandLine, seconds: str) -> None:
    for command in (("ask", "T", *OPTIONS, "--timeout"), ("requests", "wait", "r", "--for")):
        assert lonely.json(*command, seconds, exit_code=2)["error"]["code"] == "INVALID_PARAMS"


@pytest.mark.requirement("G09")
def test_the_longest_timeout_does_not_fire_at_once(companion: CommandLine, person: Person) -> None:
    with companion.start("ask", LEFT, *OPTIONS, "--timeout", "3600", "--json") as asking:
        with pytest.raises(subprocess.TimeoutExpired):
            asking.wait(2)
        asking.send_signal(signal.SIGINT)
        stdout, _ = asking.communicate(timeout=20)
    assert one_value(stdout)["request"]["reason"] == "cancelled_by_client"


# -- texts that look like options ----------------------------------------------------------------------------------

TEXTS = [
    "--dry-run?",
    "---",
    "-rf",
    "- buy milk",
    "-",
    "-h",
    "--tone",
    "--no-such=1",
    "-x -h --help",
    "--json?",
]


@pytest.mark.requirement("G18")
@pytest.mark.parametrize("text", TEXTS)
def test_a_text_that_looks_like_an_option_arrives_unchanged(
    companion: CommandLine, person: Person, text: str
) -> None:
    for command in ((f"--text={text}",), ("--text", text), ("--json", "--", text)):
        ended = companion.inside("ask", *OPTIONS, *command)
        assert (ended.returncode, person.seen[-1]["title"]) == (0, text), ended.stderr
        assert ended.stdout.startswith("{") == ("--json" in command)


@pytest.mark.requirement("G18")
@pytest.mark.parametrize("text", [text for text in TEXTS if text != "--tone"])
def test_as_a_separate_argument_too_unless_it_is_an_option(
    companion: CommandLine, person: Person, text: str
) -> None:
    ended = companion.inside("input", text, "--timeout", "30")
    assert (ended.returncode, person.seen[-1]["title"]) == (0, text), ended.stderr


@pytest.mark.requirement("G18")
def test_options_that_are_texts_behind_the_double_dash(companion: CommandLine, person: Person) -> None:
    for text in ("--json", "--help", "--tone", "--"):
        ended = companion.inside("input", "--", text)
        assert (ended.returncode, person.seen[-1]["title"]) == (0, text), ended.stderr


@pytest.mark.requirement("G18")
def test_every_value_of_an_option_may_look_like_one(companion: CommandLine, person: Person) -> None:
    companion.inside("ask", "T", "--option", "-f", "--option=--yes=-rf", "--task-id", "--json")
    assert person.seen[-1]["options"] == [{"id": "-f", "label": "-f"}, {"id": "--yes", "label": "-rf"}]
    companion.inside("input", "T", "--placeholder", "--multiline")
    assert person.seen[-1]["input"]["placeholder"] == "--multiline"
    assert not person.seen[-1]["input"]["multiline"]


@pytest.mark.requirement("G18", "CP-6.6")
@pytest.mark.parametrize(
    "arguments",
    [
        ("ask", "T", *OPTIONS, "--optoin", "x=y"),
        ("ask", "T", "U", *OPTIONS),
        ("ask", *OPTIONS),
        ("ask", "T", "--text=U", *OPTIONS),
        ("notify", "-rf", "-rf"),
        ("notify", "--json"),
        ("notify", "--tone=warning"),
        ("confirm", "--only-yes"),
    ],
)
def test_what_is_no_single_text_is_2_and_says_how_it_is_written(
    lonely: CommandLine, arguments: tuple[str, ...]
) -> None:
    error = lonely.json(*arguments, exit_code=2)["error"]
    assert "--" in error["message"]
    assert "-rf" not in error["message"]


@pytest.mark.requirement("G18")
def test_a_value_that_is_json_s_name_does_not_turn_it_on(lonely: CommandLine) -> None:
    for arguments in (
        ("ask", "T", "--option", "--json", "--timeout", "soon"),
        ("ask", "--text", "--json", "--no-such-option", "x", "y"),
        ("lease", "run", "--no-such", "echo", "--json"),
    ):
        ended = lonely.inside(*arguments)
        assert (ended.returncode, ended.stdout) == (2, ""), ended.stderr


# -- signals -------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-6.5", "CP-6.6")
@pytest.mark.parametrize(
    ("number", "exit_code", "code"),
    [
        (signal.SIGINT, 130, "INTERRUPTED"),
        (signal.SIGTERM, 143, "TERMINATED"),
        (signal.SIGHUP, 129, "HANGUP"),
    ],
)
def test_a_signal_takes_the_question_back(
    companion: CommandLine, number: signal.Signals, exit_code: int, code: str
) -> None:
    with companion.start("confirm", LEFT, "--json") as asking:
        until(lambda: open_requests(companion) == 1)
        asking.send_signal(number)
        stdout, stderr = asking.communicate(timeout=20)
    ended = one_value(stdout)
    assert (asking.returncode, ended["error"]["code"]) == (exit_code, code)
    assert ended["request"]["reason"] == "cancelled_by_client"
    assert open_requests(companion) == 0
    assert "Traceback" not in stderr


def test_an_ignored_signal_does_not_take_it_back(companion: CommandLine) -> None:
    """As under nohup."""
    ignoring = ["sh", "-c", 'trap "" HUP; exec "$@"', "sh"]
    with companion.start("confirm", LEFT, "--json", wrapped=ignoring) as asking:
        until(lambda: open_requests(companion) == 1)
        asking.send_signal(signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            asking.wait(0.5)
        asking.send_signal(signal.SIGINT)
        assert asking.wait(20) == 130


@pytest.mark.requirement("CP-4.2", "CP-6.6")
def test_when_the_broker_goes_the_request_is_told(folder: Path) -> None:
    """Its id is what the answer can be fetched by, should the broker be back."""
    with running_broker(folder) as broker:
        companion = pair(broker)
        with companion.start("confirm", LEFT, "--json") as asking:
            until(lambda: open_requests(companion) == 1)
            broker.kill()
            stdout, _ = asking.communicate(timeout=30)
    ended = one_value(stdout)
    assert (asking.returncode, ended["error"]["code"]) == (4, "NOT_CONNECTED")
    assert ended["request"]["capability"] == "interaction.choose"


def test_the_broker_s_refusals_keep_their_codes(companion: CommandLine) -> None:
    refusals = [
        (("ask", "T", "--option", "a"), 2, "INVALID_PARAMS"),
        (("ask", "T", "--option", "a", "--option", "a"), 2, "INVALID_PARAMS"),
        (("ask", "T", *OPTIONS, "--style", "no-such"), 2, "UNSUPPORTED_STYLE"),
        (("input", "T", "--character", "no-such"), 2, "INVALID_PARAMS"),
    ]
    for command, exit_code, code in refusals:
        error = companion.json(*command, exit_code=exit_code)["error"]
        assert error["code"] == code, (command, error)


def test_scopes_hold_for_the_verbs(companion: CommandLine) -> None:
    companion.json("pair", "Notifier", "--scopes", "notify", "--credential-profile", "notifier")
    asked = ("ask", "T", *OPTIONS, "--credential-profile", "notifier")
    assert companion.json(*asked, exit_code=3)["error"]["code"] == "FORBIDDEN"
    profile_file(companion, "notifier").unlink()
