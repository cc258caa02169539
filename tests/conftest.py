"""Two settings for every law: 300 examples, the same each time, or 20,000 new ones with INFINIMEM_NIGHTLY=1."""

from __future__ import annotations

import os

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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests marked nightly run in the nightly setting only."""
    if NIGHTLY:
        return
    for item in items:
        if "nightly" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="minutes long; set INFINIMEM_NIGHTLY=1"))
