"""GPUs by name: the table of facts, the vDevices made of it, and the GPU at hand."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import irkit
from irkit.architectures import ARCHITECTURES
from irkit.dialects.task.rates import RATES
from irkit.driver import gpu_at_hand
from irkit.driver.compiler.targets import planned_device, usual_device
from irkit.runtime.cuda import availability
from irkit.schedule import devices
from irkit.schedule.devices import device, device_names
from irkit.schedule.gpus import Gpu, estimated_rates, gpu_vdevice, known_as, symbol, table
from irkit.schedule.rates import default_rates, write

TABLE = table()


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What a test registers goes again, and no rates were measured on this machine."""
    monkeypatch.setattr(devices, "_REGISTRY", dict(devices._REGISTRY))
    monkeypatch.setenv("IRKIT_RATES_DIR", str(tmp_path))


def at_hand(monkeypatch: pytest.MonkeyPatch, gpu: Gpu) -> None:
    """Let `gpu` be this machine's."""
    facts = {
        name: getattr(gpu, name)
        for name in ("multiprocessors", "l2_bytes", "clock_mhz", "bandwidth_gb_s", "memory_bytes")
    }
    found = SimpleNamespace(
        name=gpu.driver_names[0],
        architecture=gpu.architecture,
        shared_bytes=gpu.shared_bytes,
        **facts,
    )
    monkeypatch.setattr(availability, "why_not", lambda: None)
    monkeypatch.setattr("irkit.runtime.cuda.driver.device", lambda: found)


# The table


@pytest.mark.parametrize("name", TABLE)
def test_rows_hold_together(name: str):
    gpu = TABLE[name]
    assert re.fullmatch(r"[a-z0-9-]+", name)
    assert gpu.driver_names
    assert 1 <= gpu.multiprocessors <= 200
    assert 1 << 20 <= gpu.l2_bytes <= 128 << 20
    assert 900 <= gpu.clock_mhz <= 3000
    assert 1 << 33 <= gpu.memory_bytes <= 288 << 30
    made = device(name)
    assert (made.name, made.kind, made.veus) == (name, "cuda", gpu.multiprocessors)
    assert (made.shared_bytes, made.arch) == (gpu.architecture.shared_bytes, gpu.arch)
    assert made.rates.keys() == default_rates("h200").keys()


def test_rows_are_told_apart_by_what_the_driver_says():
    """Two GPUs of one driver name differ in what decides."""
    for gpu in TABLE.values():
        for name in gpu.driver_names:
            asked = dataclasses.replace(gpu, name="asked", driver_names=(name,))
            assert known_as(asked) == gpu


def test_every_generation_is_there():
    assert {gpu.arch for gpu in TABLE.values()} >= {
        "sm_80",
        "sm_86",
        "sm_89",
        "sm_90a",
        "sm_100a",
        "sm_120",
    }
    facts = {n: (TABLE[n].multiprocessors, TABLE[n].l2_bytes >> 20) for n in ("a100", "rtx4090")}
    assert facts == {"a100": (108, 40), "rtx4090": (128, 72)}
    assert device("a100").shared_bytes == 163 * 1024
    assert device("rtx3090").shared_bytes == device("rtx5090").shared_bytes == 99 * 1024
    assert device("b200").shared_bytes == 227 * 1024


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("RTX 4090", "rtx4090"),
        ("NVIDIA GeForce RTX 3080 Ti", "rtx3080ti"),
        ("a1000", "a100"),
        ("h10", "h100"),
    ],
)
def test_an_unknown_name_has_near_ones(name: str, near: str):
    with pytest.raises(irkit.UnsupportedError, match=rf"'{name}'; did you mean '{near}'\? Known: "):
        device(name)


def test_names_of_the_table_are_taken():
    with pytest.raises(ValueError, match="'rtx4090' is already registered"):
        devices.register_device("rtx4090", device("test4"))
    assert {"a100", "rtx5090", "cpu", "cpuN"} <= set(device_names())


# Rates


def test_estimated_rates_go_by_lane():
    base, found = default_rates("h200"), estimated_rates(TABLE["a100"])
    clock = 1980 / 1410
    assert found["fma"] == pytest.approx(base["fma"] * clock * 2, rel=1e-3)
    assert found["index"] == pytest.approx(base["index"] * clock, rel=1e-3)
    assert found["byte"] == pytest.approx(base["byte"] * (4800 / 132) / (1555 / 108), rel=1e-3)
    for name in base:
        if RATES[name].lane in ("serial", "latency"):
            assert found[name] == base[name]
    assert estimated_rates(TABLE["h200"]) == pytest.approx(base, rel=1e-3)


def test_what_was_measured_goes_before_an_estimate(tmp_path: Path):
    assert device("h200").rates_from == ""
    estimate = device("l4")
    assert estimate.rates_from == "h200"
    write(tmp_path / "l4.json", "l4", "NVIDIA L4", {"fma": 4.5})
    partly = device("l4")
    assert (partly.rates["fma"], partly.rates_from) == (4.5, "h200")
    assert partly.rates["byte"] == estimate.rates["byte"]
    write(tmp_path / "l4.json", "l4", "NVIDIA L4", {**estimate.rates, "fma": 4.5})
    assert device("l4").rates_from == ""


def test_the_report_says_that_rates_are_an_estimate():
    text = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { func.return %x : tensor<4xf32> }"
    for name, rates in (("rtx3060", "estimated from h200"), ("h200", "measured")):
        assert irkit.compile(irkit.parse(text), device=name).report()["rates"] == rates


# The GPU at hand


def test_a_gpu_of_the_table_is_at_hand(monkeypatch: pytest.MonkeyPatch):
    """A program for it is the one that is cross-compiled by its name."""
    at_hand(monkeypatch, TABLE["rtx3080-12gb"])
    assert planned_device(device="cuda") == device("rtx3080-12gb")
    assert planned_device("cuda") == device("rtx3080-12gb")
    assert planned_device() == device("rtx3080-12gb")
    assert usual_device("cuda") == "cuda"


def test_a_part_of_a_gpu_is_at_hand(monkeypatch: pytest.MonkeyPatch):
    part = dataclasses.replace(
        TABLE["a100"], multiprocessors=14, driver_names=("NVIDIA A100-SXM4-40GB MIG 1g.5gb",)
    )
    at_hand(monkeypatch, part)
    made = planned_device(device="cuda")
    assert (made.name, made.veus) == ("nvidia-a100-sxm4-40gb-mig-1g-5gb", 14)
    assert made == device(made.name)
    assert made.rates_from == "h200"


def test_a_gpu_with_other_multiprocessors_is_not_the_one_of_the_table(
    monkeypatch: pytest.MonkeyPatch,
):
    at_hand(monkeypatch, dataclasses.replace(TABLE["h200"], multiprocessors=128))
    made = planned_device(device="cuda")
    assert (made.name, made.veus) == ("nvidia-h200", 128)


def test_no_gpu_at_hand(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(availability, "why_not", lambda: "no CUDA device")
    with pytest.raises(irkit.DeviceError, match="'cuda': no CUDA device"):
        planned_device(device="cuda")
    assert usual_device("cuda") == "h200"


def test_symbols():
    assert symbol("NVIDIA GH200 480GB") == "nvidia-gh200-480gb"
    assert symbol("???") == "gpu"


def test_other_architectures_are_refused_by_name(monkeypatch: pytest.MonkeyPatch):
    def asked(major: int, minor: int) -> str | None:
        attributes: dict[str, int] = {"MAJOR": major, "MINOR": minor}
        kind = "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_"
        fake: Any = SimpleNamespace(
            cuInit=lambda flags: (0,),
            cuDeviceGetCount=lambda: (0, 1),
            cuDeviceGet=lambda number: (0, number),
            cuDeviceGetName=lambda size, handle: (0, b"NVIDIA Quadro\0\0"),
            cuDeviceGetAttribute=lambda name, handle: (0, attributes[name]),
            CUresult=SimpleNamespace(CUDA_SUCCESS=0),
            CUdevice_attribute=SimpleNamespace(**{kind + a: a for a in attributes}),
        )
        monkeypatch.setattr(availability, "import_module", lambda name: fake)
        return availability.why_not()

    assert asked(7, 5) == "NVIDIA Quadro has compute capability 7.5, irkit needs 8.0 or later"
    assert asked(13, 0) == (
        "NVIDIA Quadro has compute capability 13.0, for which irkit makes no code"
    )
    assert all(asked(*a.capability) is None for a in ARCHITECTURES.values())


def test_facts_are_the_drivers(monkeypatch: pytest.MonkeyPatch):
    at_hand(monkeypatch, TABLE["l40s"])
    assert gpu_at_hand.described() == dataclasses.replace(TABLE["l40s"], name="nvidia-l40s")
    assert gpu_vdevice(TABLE["l40s"]) == device("l40s")
