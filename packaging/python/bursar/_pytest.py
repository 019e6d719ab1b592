"""``@pytest.mark.bursar(max="512M")``: a test that needs more memory fails."""

from __future__ import annotations

from typing import Generator, Union

import pytest

from ._command import shown, size
from ._measure import measure

_MARK = "bursar(max=None, growth=None): fail if the peak RSS of this process (or its growth) exceeds a size while the test runs"


def pytest_configure(config: pytest.Config) -> None:
    """The mark is known to ``--strict-markers``."""
    config.addinivalue_line("markers", _MARK)


def _limits(max: Union[int, str, None] = None, growth: Union[int, str, None] = None) -> "dict[str, int]":
    given = {"max": max, "growth": growth}
    return {name: size(value) for name, value in given.items() if value is not None}


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Fixtures are set up before; what the test itself does is measured."""
    mark = item.get_closest_marker("bursar")
    if mark is None:
        yield
        return
    try:
        limits = _limits(*mark.args, **mark.kwargs)
    except (TypeError, ValueError) as error:
        raise pytest.UsageError(f"{item.nodeid}: mark bursar: {error}") from None
    with measure() as measured:
        outcome = yield
    item.user_properties.append(("bursar_peak_rss_bytes", measured.peak_rss_bytes))
    outcome.get_result()  # type: ignore[attr-defined]
    found = {"max": measured.peak_rss_bytes, "growth": measured.growth_bytes}
    what = {"max": "peak RSS", "growth": "growth of RSS"}
    for name, limit in limits.items():
        held = found[name]
        if held is not None and held > limit:
            pytest.fail(f"{what[name]} {shown(held)} exceeds {name}={shown(limit)}: {measured}", pytrace=False)
