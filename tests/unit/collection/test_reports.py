"""The form of reports on their way, and of lists of ids."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsilons.collection.reports import MOST_REPORTS, MalformedError, Report, read_ids, read_reports, write_reports

report = st.builds(
    Report, st.binary(min_size=16, max_size=16), st.integers(0, 255), st.integers(0, 255), st.binary(max_size=90)
)


@given(st.lists(report, max_size=5))
def test_reports_come_back(reports: list[Report]) -> None:
    assert read_reports(write_reports(reports)) == reports


@given(st.lists(report, min_size=1, max_size=3), st.data())
def test_what_is_cut_off_is_no_report(reports: list[Report], data: st.DataObject) -> None:
    body = write_reports(reports)
    cut = data.draw(st.integers(1, len(body) - 1))
    found = read_reports(body[:-cut])
    assert found is None or (len(found) < len(reports) and found == reports[: len(found)])


def test_a_request_carries_only_so_many() -> None:
    one = Report(bytes(16), 1, 0, b"")
    assert len(read_reports(write_reports([one] * MOST_REPORTS)) or ()) == MOST_REPORTS
    assert read_reports(write_reports([one] * (MOST_REPORTS + 1))) is None


@given(st.binary(max_size=200))
def test_any_bytes_are_reports_or_none(body: bytes) -> None:
    found = read_reports(body)
    assert found is None or write_reports(found) == body


@given(st.sets(st.binary(min_size=16, max_size=16), max_size=6))
def test_ids_come_back_in_order_only(ids: set[bytes]) -> None:
    listed = sorted(ids)
    assert read_ids(b"".join(listed)) == listed
    if len(listed) > 1:
        for wrong in (listed[::-1], [*listed, listed[-1]], [*listed[:-1], listed[-1][:-1]]):
            with pytest.raises(MalformedError):
                read_ids(b"".join(wrong))
