"""Charts of the evidence: they take the colours of the page and share nothing."""

from __future__ import annotations

import re

from nexmark.report.charts import night_chart, pairs_chart


def test_their_text_has_the_colour_of_the_page() -> None:
    svg = night_chart([{"query": "q5", "ratio": 1.2, "lo": 1.1, "hi": 1.3, "red": True}])
    assert 'fill="currentColor"' in svg
    assert not re.search(r'fill="(black|#000|white|#fff)', svg)
    assert "xmlns" not in svg


def test_nothing_to_draw_is_no_chart() -> None:
    assert night_chart([]) == ""
    assert pairs_chart([]) == ""


def test_two_on_a_page_share_no_id() -> None:
    rows = [{"query": "q5", "ratio": 1.2, "lo": 1.1, "hi": 1.3, "red": True}]
    ids = [set(re.findall(r'id="([^"]+)"', night_chart(rows))) for _ in range(2)]
    assert ids[0].isdisjoint(ids[1])
