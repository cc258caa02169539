"""Two settings for every law: 300 examples, the same each time, or 20,000 new ones with INFINIMEM_NIGHTLY=1."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

NIGHTLY = os.environ.get("INFINIMEM_NIGHTLY") == "1"

# A fixture's folder is shared by the examples of one law; laws that use one make their own folder inside it.
RELAXED = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]
settings.register_profile(
    "ci", max_examples=300, deadline=None, derandomize=True, database=None, suppress_health_check=RELAXED
)
settings.register_profile("nightly", max_examples=20_000, deadline=None, suppress_health_check=RELAXED)
settings.load_profile("nightly" if NIGHTLY else "ci")

# Behind a shell's `&` or nohup these are ignored, and what a test starts would inherit that and not be interrupted.
for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--live`: tests that ask the model behind OPENAI_BASE_URL."""
    parser.addoption("--live", action="store_true", help="ask the model that OPENAI_BASE_URL and INFINIMEM_MODEL name")


@pytest.fixture(autouse=True)
def no_model_of_ones_own(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that whoever runs the tests has configured is asked nothing, but by the live ones."""
    if "live" not in request.keywords:
        for name in ("OPENAI_BASE_URL", "INFINIMEM_MODEL", "INFINIMEM_MODEL_NAME", "INFINIMEM_MODEL_URL"):
            monkeypatch.delenv(name, raising=False)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests marked nightly run in the nightly setting only, live ones with --live."""
    for item in items:
        if "nightly" in item.keywords and not NIGHTLY:
            item.add_marker(pytest.mark.skip(reason="minutes long; set INFINIMEM_NIGHTLY=1"))
        if "live" in item.keywords and not config.getoption("--live"):
            item.add_marker(pytest.mark.skip(reason="asks a real model; give --live"))
