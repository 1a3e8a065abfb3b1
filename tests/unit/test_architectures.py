"""Architectures of GPUs: which machine code runs where, and what the instructions hang on."""

from __future__ import annotations

import dataclasses

import pytest

from irkit.architectures import ARCHITECTURES, MINIMUM, architecture_for, runs_on
from irkit.errors import UnsupportedError
from irkit.schedule.devices import device


def test_limits_are_those_of_the_documentation():
    shared = {name: a.shared_bytes // 1024 for name, a in ARCHITECTURES.items()}
    assert shared == {
        "sm_80": 163,
        "sm_86": 99,
        "sm_87": 163,
        "sm_89": 99,
        "sm_90a": 227,
        "sm_100a": 227,
        "sm_103a": 227,
        "sm_110": 227,
        "sm_120": 99,
        "sm_121": 99,
    }
    assert min(a.capability for a in ARCHITECTURES.values()) == MINIMUM
    for name, a in ARCHITECTURES.items():
        assert name == f"sm_{a.capability[0]}{a.capability[1]}{a.suffix}"


@pytest.mark.parametrize(
    ("capability", "name"),
    [
        ((8, 0), "sm_80"),
        ((8, 6), "sm_86"),
        ((8, 8), "sm_87"),
        ((9, 0), "sm_90a"),
        ((10, 0), "sm_100a"),
        ((10, 1), None),
        ((12, 1), "sm_121"),
        ((12, 3), "sm_121"),
        ((7, 5), None),
        ((13, 0), None),
    ],
)
def test_what_to_compile_for(capability: tuple[int, int], name: str | None):
    found = architecture_for(capability)
    assert (found.name if found is not None else None) == name


def test_code_of_one_capability_runs_on_no_other():
    assert runs_on(ARCHITECTURES["sm_80"], (8, 6))
    assert not runs_on(ARCHITECTURES["sm_86"], (8, 0))
    assert not runs_on(ARCHITECTURES["sm_80"], (9, 0))
    assert not runs_on(ARCHITECTURES["sm_100a"], (10, 3))


def test_instructions():
    has = {n: (a.has_wgmma, a.has_early_launches) for n, a in ARCHITECTURES.items()}
    assert [n for n, (wgmma, _) in has.items() if wgmma] == ["sm_90a"]
    assert [n for n, (_, early) in has.items() if not early] == ["sm_80", "sm_86", "sm_87", "sm_89"]


def test_a_device_says_its_architecture():
    h200 = device("h200")
    assert (h200.arch, h200.capability, h200.architecture.has_wgmma) == ("sm_90a", (9, 0), True)
    assert (device("cpu2").arch, device("cpu2").capability) == ("", (0, 0))
    with pytest.raises(UnsupportedError, match="'cpu2' of architecture '': there are sm_80, sm_86"):
        _ = device("cpu2").architecture
    with pytest.raises(UnsupportedError, match="'h200' of architecture 'sm_75': there are sm_80"):
        dataclasses.replace(h200, arch="sm_75")
