"""Keys and passwords in memory: said, stored all the same, and quiet where they are meant."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from infinimem import Library
from infinimem.cli import main
from infinimem.secrets import SUSPECT, detectors, secrets_in, secrets_of
from infinimem.text.document import parse

NOW = datetime(2026, 5, 1, 9, tzinfo=UTC)
RANDOM = "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1eF3hJ5kL7nP9rS1uV3xaB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1eF3hJ5"
HEX = "3f786850e387550fdab836ed7e6dc881"

SECRETS = {  # put together here, so that no scanner takes this file for a leak
    "AKIA" + "IOSFODNN7EXAMPLE": "AWS Access Key",
    "aws_secret_access_key=" + RANDOM[:40]: "password",
    "the deploy key is gh" + "p_" + RANDOM[:36]: "GitHub Token",
    "github" + "_pat_" + RANDOM[:60]: "GitHub token",
    "gl" + "pat-" + RANDOM[:20]: "GitLab Token",
    "sk-" + "proj-" + RANDOM[:48]: "OpenAI key",
    "sk-" + "ant-api03-" + RANDOM[:60]: "Anthropic key",
    "AI" + "za" + RANDOM[:35]: "Google key",
    "xox" + "b-1234567890-1234567890123-" + RANDOM[:24]: "Slack Token",
    "sk_" + "live_" + RANDOM[:24]: "Stripe Access Key",
    "SG." + RANDOM[:22] + "." + RANDOM[:43]: "SendGrid API Key",
    "SK" + HEX: "Twilio API Key",
    HEX + "-us12": "Mailchimp Access Key",
    "1234567890:" + RANDOM[:35]: "Telegram Bot Token",
    "-----BEGIN OPENSSH " + "PRIVATE KEY-----": "Private Key",
    "clone https://maya:" + "hunter22@git.example/notes": "Basic Auth Credentials",
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0." + RANDOM[:43]: "JSON Web Token",
    "password = 'correct-horse'": "Secret Keyword",
    "The wifi password is hunter2.": "password",
    "The password for the router in the hall is Xk92!ab": "password",
    "Passwort: Sommer2026!": "password",
    "Das Kennwort für den Rechner ist Reiher77": "password",
    "the PIN is 4711": "PIN",
}
HARMLESS = [
    "The password is with Solveig.",
    "The password was changed on 2026-05-01; the new one is in the safe.",
    "Commit 3f786850e387550fdab836ed7e6dc881de23001b fixed the leak.",
    "The photo is IMG_20260501_101244_lisbon-holiday.jpg in Photos/2026.",
    "Order 8837-2291-AAF, IBAN NO93 8601 1117 947, call +47 55 12 34 56.",
    "The server answers at 84.212.13.9 and https://example.org/a/long-path-of-words/page-2?id=77aX",
    'The secret ingredient is "cardamom".',
    "The token ring of 1989; the key to the cabin hangs by the door.",
    "password: ${ROUTER_PASSWORD1}",
    "Sewing pin: 12 of them are missing. PIN: ask Ines.",
    "秘密のパスワードは金庫の中です。",
]


@pytest.mark.parametrize(("text", "kind"), SECRETS.items(), ids=SECRETS.values())
def test_what_looks_like_a_secret_is_named_by_kind_and_line(text: str, kind: str) -> None:
    assert kind in [name for name, line in secrets_in(f"first\n{text}\nlast") if line == 2]


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_talks_of_secrets_is_quiet(text: str) -> None:
    assert secrets_in(text) == []


@pytest.mark.parametrize("text", SECRETS)
def test_what_is_cheap_to_ask_first_hides_nothing_from_the_detectors(text: str) -> None:
    found = [kind for kind, detector in detectors() if any(detector.analyze_string(text))]
    assert not found or SUSPECT.search(text)


def test_the_sample_library_holds_none() -> None:
    folder = Path(__file__).parents[1] / "sample_library"
    assert [(path, found) for path in folder.rglob("*.md") if (found := secrets_in(path.read_text()))] == []


def test_a_line_of_prose_can_say_that_it_is_meant() -> None:
    assert secrets_in("wifi password: hunter22 <!-- pragma: allowlist secret -->") == []


def test_a_secret_far_into_a_long_line_is_found() -> None:
    assert secrets_in("lorem " * 30_000 + "the wifi password is hunter2 " + "ipsum " * 1000) == [("password", 1)]


def test_an_entry_that_says_so_is_quiet_with_all_its_lines() -> None:
    text = "- <seq=1, secret=ok> router\n  password: hunter22\n- <seq=2> router\n  password: hunter22\n"
    assert secrets_of(parse("CURRENT.md", text.encode())) == [("password", 4)]


# write and check


def test_write_warns_stores_and_never_repeats_the_secret(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = str(tmp_path / "memory")
    assert main(["-L", root, "write", "hello", "The wifi password is hunter2."]) == 0
    shown = capsys.readouterr()
    assert shown.out == "1\n2\n"
    assert "2 looks like it holds a secret (password); it is stored" in shown.err
    assert "hunter2" not in shown.err
    assert "hunter2" in (tmp_path / "memory" / "CURRENT.md").read_text()


def test_write_is_quiet_where_the_secret_is_meant(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = str(tmp_path / "memory")
    assert main(["-L", root, "write", "--secret-ok", "The wifi password is hunter2."]) == 0
    assert "secret" not in capsys.readouterr().err
    assert "<seq=1, secret=ok, " in (tmp_path / "memory" / "CURRENT.md").read_text()
    library = Library.open(root)
    assert library.check() == []
    library.flush()
    assert library.check() == []


def test_a_secret_deleted_from_its_topic_is_still_named_in_evidence(tmp_path: Path) -> None:
    library = Library.open(tmp_path / "memory", create=True, clock=lambda: NOW)
    library.write(["The wifi password is hunter2.", "The boat Terna has berth 12."])
    library.flush()
    path = next(path for path in (library.root / "topics").iterdir() if "hunter2" in path.read_text())
    assert [finding.problem.path for finding in library.check()] == [f"topics/{path.name}"]
    path.write_text("".join(line for line in path.read_text().splitlines(True) if "hunter2" not in line))
    library.check(fix=True)
    [finding] = [finding for finding in library.check() if finding.problem.code == "secret"]
    assert str(finding.problem).startswith("evidence/2026-05.md:3: looks like it holds a secret (password)")


@pytest.mark.parametrize(
    "text",
    ["The API key is sk-proj-Abcdefghijklmnopqrstuvwx1234567890ABCDEFGHIJ.", "password: Xk9vQz7LmP2r",
     "ghp_16C7e42F292c6912E7710c838347Ae178B4a is the token of Terna.", "AKIAIOSFODNN7EXAMPLE"],
)  # fmt: skip
def test_no_file_or_heading_is_named_after_a_key(tmp_path: Path, text: str) -> None:
    library = Library.open(tmp_path / "memory", create=True)
    library.write([text, text.replace("is", "was")])
    library.flush(planner="lexical")
    opaque = max(text.strip(".").replace("_", "-").replace("-", " ").split(), key=len).lower()
    for path in (library.root / "topics").rglob("*.md"):
        headings = [line for line in path.read_text().splitlines() if line.startswith("#")]
        assert opaque not in f"{path.name} {headings}".lower()


@pytest.mark.parametrize("meant", [{}, {"secret": "ok"}])
def test_what_looks_like_a_password_stays_out_of_the_catalogue(tmp_path: Path, meant: dict[str, str]) -> None:
    library = Library.open(tmp_path / "memory", create=True)
    library.write("My wifi password is hunter2-blue-sky", meta=meant)
    library.write(["The wifi box stands in the hall.", "The wifi is slow on Sundays, says Ines."])
    library.flush("lexical")
    for row in library.catalog():
        assert "hunter2" not in row.topic + row.title + row.summary
