"""The STF reader and comparison, without p4c or a switch."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.switch.stf.language import Add, CheckCounter, Expect, Packet, SetDefault, StfError, read
from tests.switch.stf.play import differences, matches, table_index


def parse(tmp_path: Path, text: str) -> list[object]:
    path = tmp_path / "t.stf"
    path.write_text(text)
    return list(read(path))


def test_entries_keep_their_priority_and_their_values_as_written(tmp_path: Path) -> None:
    [add, default] = parse(
        tmp_path,
        "# comment\nadd t 503 data.f1:0x****0202 x$0.h:0x25/4 c.a(val:7, port:0b11) = A\nsetdefault t d()\n",
    )
    assert add == Add(
        "t", 503, (("data.f1", "0x****0202"), ("x$0.h", "0x25/4")), "c.a", {"val": 7, "port": 3}
    )
    assert default == SetDefault("t", "d", {})


def test_packets_and_expectations(tmp_path: Path) -> None:
    assert parse(tmp_path, "packet 0 00 0102\nexpect 1 00 ** $\nexpect 2\nwait\n") == [
        Packet(0, b"\0\1\2"), Expect(1, "00**$"), Expect(2, None),
    ]  # fmt: skip


def test_counter_checks(tmp_path: Path) -> None:
    [check] = parse(tmp_path, "check_counter c(3) bytes >= 12")
    assert check == CheckCounter("c", 3, "bytes", ">=", 12)


def test_an_unknown_line_names_its_place(tmp_path: Path) -> None:
    with pytest.raises(StfError, match=r"t\.stf:2"):
        parse(tmp_path, "wait\nfrobnicate 1\n")


@pytest.mark.parametrize(
    ("want", "have", "same"),
    [("00**", "00ff", True), ("00", "00ff", True), ("00$", "00ff", False), ("00ff$", "00ff", True),
     ("01", "00ff", False), ("00ff00", "00ff", False)],
)  # fmt: skip
def test_what_matches(want: str, have: str, same: bool) -> None:
    assert matches(want, bytes.fromhex(have)) is same


def test_missing_surplus_and_wrong_packets_are_differences() -> None:
    assert list(differences({1: ["00"], 2: [None]}, {1: [b"\0"], 2: [b"x"]})) == []
    assert len(list(differences({1: ["00"], 2: ["01"]}, {2: [b"\2"], 3: [b""]}))) == 3


def test_stack_elements_are_written_with_a_dollar() -> None:
    assert table_index("extra$0.h") == "extra[0].h"
    assert table_index("data.$valid$") == "data.$valid$"
