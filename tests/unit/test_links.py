"""The link to a GPU: assumed by its generation, measured once, kept beside rates, refused where broken."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_cuda import FakeDriver

from irkit.errors import UnsupportedError
from irkit.runtime.cuda import driver, link_times
from irkit.schedule.devices import device
from irkit.schedule.links import LINK_RATES, link_file, link_to, measured_link
from irkit.schedule.rates import machine_file

H200 = device("h200")


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("IRKIT_RATES_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    made = FakeDriver()
    monkeypatch.setattr(driver, "api", lambda: made)
    return made


def test_what_was_not_measured_is_assumed(folder: Path):
    link = link_to(H200)
    assert link.assumed == sorted(LINK_RATES)
    assert link.to_device(1e9) > link_to(H200, pinned=True).to_device(1e9)
    assert link_to(device("a100")).to_device(1e9) > link.to_device(1e9), "half the generation"


def test_what_was_measured_is_taken(folder: Path):
    path = machine_file(link_file("h200"))
    assert path is not None
    path.write_text('{"rates": {"to_device": 0.5}}')
    link = link_to(H200)
    assert link.to_device(100) == link.rates["copy"] + 50
    assert "to_device" not in link.assumed
    assert "to_host" in link.assumed


@pytest.mark.parametrize("text", ['{"rates": {"fma": 1.0}}', "no JSON", '{"rates": {"copy": -1}}'])
def test_a_broken_file_is_refused(folder: Path, text: str):
    path = machine_file(link_file("h200"))
    assert path is not None
    path.write_text(text)
    with pytest.raises(UnsupportedError, match=r"link-h200\.json"):
        link_to(H200)


def test_a_link_is_measured_with_the_driver(folder: Path, fake: FakeDriver):
    found = link_times.measure_link(driver.Device(), large=1 << 20)
    assert found.keys() == LINK_RATES.keys()
    assert all(rate > 0 for rate in found.values())
    names = fake.names("cuMemAlloc", "cuMemHostRegister", "cuMemHostUnregister", "cuMemFree")
    assert names == ["cuMemAlloc", "cuMemHostRegister", "cuMemHostUnregister", "cuMemFree"]


def test_it_is_measured_once(folder: Path, fake: FakeDriver, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(link_times, "device", lambda: driver.Device())
    plain = link_times.measure_link

    def small(gpu: driver.Device) -> dict[str, float]:
        return plain(gpu, 1 << 20)

    monkeypatch.setattr(link_times, "measure_link", small)
    first = link_times.keep_link(H200)
    calls = len(fake.log)
    assert link_times.keep_link(H200) == measured_link("h200")
    assert len(fake.log) == calls
    assert measured_link("h200") == pytest.approx(first)
