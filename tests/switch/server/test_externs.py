"""Counters, meters, registers, value sets and the direct resources of entries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from finsy.proto import p4d, p4r

from switch.dataplane import MeterConfig
from switch.server.errors import Code
from tests.switch.server.controller import BatchError, Controller, exact, exact_entry, number
from tests.switch.server.fake_dataplane import FakeDataplane
from tests.switch.server.program import (
    COUNTER_ID,
    METER_ID,
    REGISTER_ID,
    TABLE_ID,
    VALUE_SET_ID,
)

DATA = p4r.CounterData(packet_count=3, byte_count=400)
CONFIG = p4r.MeterConfig(cir=1000, cburst=2000, pir=3000, pburst=4000)


def fails(call: Callable[..., Any], **entity: Any) -> int:
    with pytest.raises(BatchError) as caught:
        call(**entity)
    return caught.value.codes[0]


def counter(index: int | None = None, key: int = COUNTER_ID, **fields: Any) -> p4r.CounterEntry:
    return p4r.CounterEntry(counter_id=key, index=_index(index), **fields)


def meter(index: int | None = None, key: int = METER_ID, **fields: Any) -> p4r.MeterEntry:
    return p4r.MeterEntry(meter_id=key, index=_index(index), **fields)


def register(
    index: int | None = None, value: int | None = None, key: int = REGISTER_ID
) -> p4r.RegisterEntry:
    data = None if value is None else p4d.P4Data(bitstring=number(value))
    return p4r.RegisterEntry(register_id=key, index=_index(index), data=data)


def _index(index: int | None) -> p4r.Index | None:
    return None if index is None else p4r.Index(index=index)


class TestCounters:
    def test_a_cell_is_written_and_read(self, primary: Controller) -> None:
        primary.modify(counter_entry=counter(3, data=DATA))
        assert [e.counter_entry for e in primary.read(counter_entry=counter(3))] == [
            counter(3, data=DATA)
        ]
        values = [e.counter_entry.data.packet_count for e in primary.read(counter_entry=counter())]
        assert values == [0, 0, 0, 3, 0, 0, 0, 0]
        assert len(primary.read(counter_entry=p4r.CounterEntry())) == 8

    def test_without_index_all_cells_are_written(self, primary: Controller) -> None:
        primary.modify(counter_entry=counter(data=DATA))
        assert all(e.counter_entry.data == DATA for e in primary.read(counter_entry=counter()))

    def test_without_data_nothing_changes(self, primary: Controller) -> None:
        primary.modify(counter_entry=counter(1, data=DATA))
        primary.modify(counter_entry=counter(1))
        assert primary.read(counter_entry=counter(1))[0].counter_entry.data == DATA

    def test_rules(self, primary: Controller) -> None:
        assert fails(primary.insert, counter_entry=counter(0)) == Code.INVALID_ARGUMENT
        assert fails(primary.delete, counter_entry=counter(0)) == Code.INVALID_ARGUMENT
        for call in (primary.modify, primary.read):
            assert fails(call, counter_entry=counter(-1)) == Code.INVALID_ARGUMENT
            assert fails(call, counter_entry=counter(8)) == Code.OUT_OF_RANGE
            assert fails(call, counter_entry=counter(0, key=5)) == Code.INVALID_ARGUMENT
        negative = p4r.CounterData(packet_count=-1)
        assert (
            fails(primary.modify, counter_entry=counter(0, data=negative)) == Code.INVALID_ARGUMENT
        )


class TestMeters:
    def test_a_cell_is_configured_read_and_reset(
        self, primary: Controller, dataplane: FakeDataplane
    ) -> None:
        primary.modify(meter_entry=meter(2, config=CONFIG))
        assert dataplane.meters == {(0, 2): MeterConfig(1000, 2000, 3000, 4000)}
        assert [e.meter_entry for e in primary.read(meter_entry=meter(2))] == [
            meter(2, config=CONFIG)
        ]
        primary.modify(meter_entry=meter(2))
        assert [e.meter_entry for e in primary.read(meter_entry=meter())] == [
            meter(i) for i in range(4)
        ]

    def test_all_minus_one_is_unset(self, primary: Controller) -> None:
        primary.modify(meter_entry=meter(1, config=CONFIG))
        primary.modify(
            meter_entry=meter(1, config=p4r.MeterConfig(cir=-1, cburst=-1, pir=-1, pburst=-1))
        )
        assert primary.read(meter_entry=meter(1))[0].meter_entry == meter(1)

    def test_rules(self, primary: Controller) -> None:
        assert fails(primary.insert, meter_entry=meter(0)) == Code.INVALID_ARGUMENT
        assert fails(primary.modify, meter_entry=meter(4)) == Code.OUT_OF_RANGE
        assert (
            fails(primary.modify, meter_entry=meter(0, config=p4r.MeterConfig(cir=-2)))
            == Code.INVALID_ARGUMENT
        )
        assert (
            fails(primary.modify, meter_entry=meter(0, config=p4r.MeterConfig(eburst=1)))
            == Code.INVALID_ARGUMENT
        )
        big = p4r.MeterConfig(cburst=1 << 32)
        assert fails(primary.modify, meter_entry=meter(0, config=big)) == Code.UNIMPLEMENTED
        coloured = meter(0, counter_data=p4r.MeterCounterData())
        assert fails(primary.modify, meter_entry=coloured) == Code.UNIMPLEMENTED


class TestRegisters:
    def test_a_cell_is_written_and_read(self, primary: Controller) -> None:
        primary.modify(register_entry=register(5, 0xABCDE))
        assert [e.register_entry for e in primary.read(register_entry=register(5))] == [
            register(5, 0xABCDE)
        ]
        assert [e.register_entry for e in primary.read(register_entry=register())] == [
            register(i, 0xABCDE if i == 5 else 0) for i in range(6)
        ]

    def test_without_index_all_cells_are_written(self, primary: Controller) -> None:
        primary.modify(register_entry=register(None, 7))
        assert [e.register_entry for e in primary.read(register_entry=p4r.RegisterEntry())] == [
            register(i, 7) for i in range(6)
        ]

    def test_rules(self, primary: Controller) -> None:
        assert fails(primary.modify, register_entry=register(0, 1 << 20)) == Code.INVALID_ARGUMENT
        assert fails(primary.modify, register_entry=register(0)) == Code.INVALID_ARGUMENT
        assert fails(primary.modify, register_entry=register(6, 1)) == Code.OUT_OF_RANGE
        wrong = p4r.RegisterEntry(
            register_id=REGISTER_ID, index=p4r.Index(), data=p4d.P4Data(bool=True)
        )
        assert fails(primary.modify, register_entry=wrong) == Code.INVALID_ARGUMENT


class TestDirectResources:
    @pytest.fixture(autouse=True)
    def entries(self, primary: Controller) -> None:
        primary.insert(table_entry=exact_entry(1, meter_config=CONFIG, counter_data=DATA))
        primary.insert(table_entry=exact_entry(2))

    def key(self, a: int) -> p4r.TableEntry:
        return p4r.TableEntry(table_id=TABLE_ID["exact"], match=[exact(1, a), exact(2, 1)])

    def test_are_given_only_when_asked_for(self, primary: Controller) -> None:
        assert primary.read_tables(table_id=TABLE_ID["exact"]) == [exact_entry(1), exact_entry(2)]
        wanted = {"meter_config": p4r.MeterConfig(), "counter_data": p4r.CounterData()}
        assert primary.read_tables(table_id=TABLE_ID["exact"], **wanted) == [
            exact_entry(1, meter_config=CONFIG, counter_data=DATA),
            exact_entry(2, counter_data=p4r.CounterData()),
        ]

    def test_counters_by_their_own_entity(self, primary: Controller) -> None:
        primary.modify(
            direct_counter_entry=p4r.DirectCounterEntry(table_entry=self.key(2), data=DATA)
        )
        for table_id in (0, TABLE_ID["exact"]):
            everything = p4r.DirectCounterEntry(table_entry=p4r.TableEntry(table_id=table_id))
            assert [
                e.direct_counter_entry for e in primary.read(direct_counter_entry=everything)
            ] == [p4r.DirectCounterEntry(table_entry=self.key(n), data=DATA) for n in (1, 2)]

    def test_meters_by_their_own_entity(self, primary: Controller) -> None:
        primary.modify(
            direct_meter_entry=p4r.DirectMeterEntry(table_entry=self.key(2), config=CONFIG)
        )
        primary.modify(direct_meter_entry=p4r.DirectMeterEntry(table_entry=self.key(1)))
        one = p4r.DirectMeterEntry(table_entry=self.key(2))
        assert primary.read(direct_meter_entry=one)[0].direct_meter_entry.config == CONFIG
        [first, _] = primary.read(direct_meter_entry=p4r.DirectMeterEntry())
        assert not first.direct_meter_entry.HasField("config")

    def test_rules(self, primary: Controller) -> None:
        missing = p4r.DirectCounterEntry(table_entry=self.key(9))
        for call in (primary.modify, primary.read):
            assert fails(call, direct_counter_entry=missing) == Code.NOT_FOUND
        assert fails(primary.insert, direct_counter_entry=missing) == Code.INVALID_ARGUMENT
        assert (
            fails(primary.modify, direct_counter_entry=p4r.DirectCounterEntry())
            == Code.INVALID_ARGUMENT
        )
        no_meter = p4r.DirectMeterEntry(table_entry=p4r.TableEntry(table_id=TABLE_ID["lpm"]))
        for call in (primary.modify, primary.read):
            assert fails(call, direct_meter_entry=no_meter) == Code.INVALID_ARGUMENT
        default = p4r.TableEntry(table_id=TABLE_ID["exact"], is_default_action=True)
        on_default = p4r.DirectMeterEntry(table_entry=default, config=CONFIG)
        assert fails(primary.modify, direct_meter_entry=on_default) == Code.UNIMPLEMENTED


class TestValueSets:
    def entry(self, *values: int) -> p4r.ValueSetEntry:
        members = [p4r.ValueSetMember(match=[exact(1, value)]) for value in values]
        return p4r.ValueSetEntry(value_set_id=VALUE_SET_ID, members=members)

    def test_members_are_replaced_and_read(
        self, primary: Controller, dataplane: FakeDataplane
    ) -> None:
        primary.modify(value_set_entry=self.entry(0x800))
        primary.modify(value_set_entry=self.entry(0x86DD, 0x806))
        assert dataplane.value_sets == {0: [(b"\x86\xdd", b"\xff\xff"), (b"\x08\x06", b"\xff\xff")]}
        for key in (0, VALUE_SET_ID):
            read = primary.read(value_set_entry=p4r.ValueSetEntry(value_set_id=key))
            assert [e.value_set_entry for e in read] == [self.entry(0x86DD, 0x806)]

    def test_rules(self, primary: Controller) -> None:
        assert fails(primary.insert, value_set_entry=self.entry(1)) == Code.INVALID_ARGUMENT
        assert fails(primary.modify, value_set_entry=self.entry(1, 1)) == Code.ALREADY_EXISTS
        assert fails(primary.modify, value_set_entry=self.entry(1, 2, 3)) == Code.RESOURCE_EXHAUSTED
        assert (
            fails(primary.modify, value_set_entry=p4r.ValueSetEntry(value_set_id=5))
            == Code.INVALID_ARGUMENT
        )


def test_externs_of_other_architectures_are_not_there(primary: Controller) -> None:
    for call in (primary.insert, primary.read):
        assert fails(call, extern_entry=p4r.ExternEntry()) == Code.UNIMPLEMENTED


def test_an_empty_entity_is_refused(primary: Controller) -> None:
    for call in (primary.insert, primary.read):
        assert fails(call) == Code.INVALID_ARGUMENT
