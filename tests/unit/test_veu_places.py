"""vEUs of one call start on CPUs of their own."""

import os

import pytest

from irkit.runtime import veu_threads
from irkit.runtime.veu_threads import Places


class Machine:
    """What Places asks of the kernel: where the caller runs, and where it may."""

    def __init__(self, cpu, allowed):
        self.cpu, self.allowed, self.masks = cpu, set(allowed), []

    def getaffinity(self, _):
        return set(self.allowed)

    def setaffinity(self, _, mask):
        self.masks.append(set(mask))
        if self.cpu not in mask:
            self.cpu = min(mask)


@pytest.fixture
def machine(monkeypatch):
    found = Machine(0, range(4))
    monkeypatch.setattr(veu_threads, "_current_cpu", lambda: found.cpu)
    monkeypatch.setattr(os, "sched_getaffinity", found.getaffinity, raising=False)
    monkeypatch.setattr(os, "sched_setaffinity", found.setaffinity, raising=False)
    return found


def taken(machine, cpus):
    """Where vEUs end that wake on `cpus`, the first being the caller."""
    machine.cpu = cpus[0]
    places, ends = Places(), [cpus[0]]
    for cpu in cpus[1:]:
        machine.cpu = cpu
        places.take()
        ends.append(machine.cpu)
    return ends


def test_who_is_alone_stays(machine):
    assert taken(machine, [2, 0, 3]) == [2, 0, 3]
    assert machine.masks == []


def test_who_shares_moves_once_and_is_not_bound(machine):
    assert taken(machine, [0, 0]) == [0, 1]
    assert machine.masks == [{1}, {0, 1, 2, 3}]
    assert sorted(taken(machine, [3, 3, 3, 3])) == [0, 1, 2, 3]


def test_more_veus_than_cpus_stay_where_they_are(machine):
    machine.allowed = {0, 1}
    assert taken(machine, [0, 0, 0, 1]) == [0, 1, 0, 1]


def test_only_allowed_cpus_are_taken(machine):
    machine.allowed = {5, 7}
    assert taken(machine, [7, 7]) == [7, 5]
    assert machine.masks[-1] == {5, 7}


def test_a_cpu_that_is_gone_is_no_error(machine, monkeypatch):
    def refuse(*_):
        raise OSError

    monkeypatch.setattr(os, "sched_setaffinity", refuse)
    assert taken(machine, [0, 0]) == [0, 0]


def test_without_the_calls_nothing_moves(monkeypatch):
    monkeypatch.setattr(veu_threads, "_current_cpu", None)
    Places().take()
