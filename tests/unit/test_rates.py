"""Rates of the machine at hand: found where they were kept, refused where broken, part of the cache key."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from xdsl.parser import Parser

import irkit
from benchmarks import calibrate
from benchmarks.fitting import Fit
from benchmarks.render_costs import cost_tables
from benchmarks.rtask_times import Sample
from irkit.context import IrkitContext
from irkit.driver.compiler.cache import cache_key
from irkit.driver.compiler.models import read_model
from irkit.driver.registry import register_dialects
from irkit.errors import UnsupportedError
from irkit.passes.task.vdevices import device_of, vdevice_op
from irkit.rkernels.work import Work
from irkit.schedule import rates
from irkit.schedule.devices import device

TEXT = """\
func.func @main(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %0 = graph.tanh %x : (tensor<8x16xf32>) -> tensor<8x16xf32>
  func.return %0 : tensor<8x16xf32>
}
"""


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("IRKIT_RATES_DIR", str(tmp_path / "rates"))
    return tmp_path / "rates"


def kept(name: str, content: str) -> Path:
    path = rates.machine_file(name)
    assert path is not None
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


def test_a_machines_rates_are_used_where_they_are(folder: Path):
    before = device("cpu2").rates
    path = rates.machine_file("cpu")
    assert path is not None
    rates.write(path, "cpu", "this", {"tanh": 123.0})
    assert device("cpu2").rates == {**before, "tanh": 123.0}
    assert device("cpu").rates["tanh"] == 123.0
    assert device("h200").rates["tanh"] != 123.0
    # Tests' own device is the same everywhere.
    assert device("test4").rates["tanh"] != 123.0
    rates.write(folder / "h200.json", "h200", "that", {"tanh": 4.5})
    assert device("h200").rates["tanh"] == 4.5


def test_a_processors_rates_are_its_own(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rates, "processor", lambda: "Some CPU @ 3.0 GHz")
    assert rates.machine_file("cpu") == folder / "cpu-some-cpu-3-0-ghz.json"


def test_an_empty_variable_means_none(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("IRKIT_RATES_DIR", "")
    assert rates.machine_file("cpu") is None
    monkeypatch.delenv("IRKIT_RATES_DIR")
    path = rates.machine_file("h200")
    assert path is not None
    assert path.parts[-3:] == ("irkit", "rates", "h200.json")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "no JSON: "),
        ("[]", "expected an object with an object 'rates'"),
        ('{"rates": []}', "expected an object with an object 'rates'"),
        ('{"rates": {"flop": 1.0}}', "'flop'; there are start, row, "),
        ('{"rates": {"tanh": 0}}', "'tanh' is 0: expected nanoseconds above 0"),
        ('{"rates": {"tanh": -2.0}}', "'tanh' is -2.0: expected"),
        ('{"rates": {"tanh": "fast"}}', "'tanh' is 'fast': expected"),
        ('{"rates": {"tanh": true}}', "'tanh' is True: expected"),
        ('{"rates": {"tanh": Infinity}}', "'tanh' is inf: expected"),
        ('{"rates": {"tanh": NaN}}', "'tanh' is nan: expected"),
    ],
)
def test_a_broken_file_is_one_clear_message(folder: Path, content: str, message: str):
    path = kept("cpu", content)
    with pytest.raises(UnsupportedError) as error:
        irkit.compile(irkit.parse(TEXT), device="cpu2")
    assert str(error.value).startswith(f"rates in '{path}': {message}")
    assert "\n" not in str(error.value)


def test_a_file_that_is_no_text(folder: Path):
    kept("cpu", "").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UnsupportedError, match=r"rates in '.*': 'utf-8'"):
        device("cpu2")


def test_rates_are_part_of_the_cache_key(folder: Path):
    def key() -> str:
        return cache_key(read_model(irkit.parse(TEXT), "float32"), device("cpu2"))

    before = key()
    assert key() == before
    rates.write(folder / "h200.json", "h200", "that", {"tanh": 4.5})
    assert key() == before
    path = rates.machine_file("cpu")
    assert path is not None
    rates.write(path, "cpu", "this", {"tanh": 123.0})
    assert key() != before


def test_a_saved_program_does_not_ask_for_rates(folder: Path, tmp_path: Path):
    irkit.compile(irkit.parse(TEXT), device="cpu2", cache=False).save(tmp_path / "p.irkit")
    kept("cpu", "{")
    x = np.ones((8, 16), np.float32)
    np.testing.assert_allclose(irkit.load(tmp_path / "p.irkit")(x), np.tanh(x), rtol=1e-6)


def test_rates_stand_in_the_ir_and_come_back(folder: Path):
    made = vdevice_op(device("h200"))
    made.verify()
    ctx = IrkitContext()
    register_dialects(ctx)
    module = Parser(ctx, str(made)).parse_module()
    assert device_of(module) == device("h200")


# Fitting


def samples(true: dict[str, float], count: int = 60) -> list[Sample]:
    rng = np.random.default_rng(0)
    found: list[Sample] = []
    for number in range(count):
        units = {k: float(10 ** rng.uniform(0, 4)) * (rng.random() < 0.6) for k in true}
        units["start"] = 1.0
        priced = Work(units).nanoseconds(calibrate.replace(device("cpu2"), rates=true))
        found.append(Sample(f"p{number}", "f", "map.rows", [1], units, 1.0, priced, "[8] []"))
    return found


def test_a_fit_finds_the_rates_that_times_were_made_from():
    true = {"start": 100.0, "op": 0.03, "tanh": 12.0, "byte": 0.02, "row": 3.0, "round": 0.5}
    start = {**device("cpu2").rates}
    found = Fit(samples(true), start).run(hold=1e-6)
    assert found.keys() == true.keys()
    estimates = [
        Work(s.work).nanoseconds(calibrate.replace(device("cpu2"), rates=found)) / s.measured_ns
        for s in samples(true)
    ]
    assert max(max(e, 1 / e) for e in estimates) < 1.05
    assert found["tanh"] == pytest.approx(12.0, rel=0.05)


def test_a_few_outliers_do_not_rule_a_fit():
    true = {"start": 100.0, "op": 0.03, "tanh": 12.0}
    made = samples(true)
    for spoilt in made[::12]:
        spoilt.measured_ns *= 50
    found = Fit(made, device("cpu2").rates).run()
    assert found["tanh"] == pytest.approx(12.0, rel=0.1)


def test_a_rate_that_no_time_bears_on_stays():
    true = {"start": 100.0, "op": 0.03}
    made = [
        Sample("p", "f", "k", [1], {**s.work, "leaf": 1e-9}, 1, s.measured_ns)
        for s in samples(true)
    ]
    start = device("cpu2").rates
    assert Fit(made, start).run()["leaf"] == pytest.approx(start["leaf"], rel=0.01)


# The tool


def test_calibrating_writes_what_devices_then_have(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
):
    arguments = ["--only", "relu 4x64", "--samples", str(tmp_path / "samples.json")]
    monkeypatch.setattr("sys.argv", ["irkit-bench calibrate", *arguments])
    assert calibrate.main() == 0
    found = json.loads((tmp_path / "samples.json").read_text())
    assert {sample["rkernel"] for sample in found} == {"map.rows", "map.masked"}
    assert all(sample["measured_ns"] > 0 for sample in found)
    path = rates.machine_file("cpu")
    assert path is not None
    assert str(path) in capsys.readouterr().out
    content = json.loads(path.read_text())
    assert content["device"] == "cpu"
    assert dict(device("cpu").rates) == content["rates"]
    # Again from the measurements kept, to another place.
    out = tmp_path / "again.json"
    refit = ["--refit", str(tmp_path / "samples.json"), "--out", str(out)]
    monkeypatch.setattr("sys.argv", ["irkit-bench calibrate", *refit])
    assert calibrate.main() == 0
    assert json.loads(out.read_text())["rates"].keys() == content["rates"].keys()


def test_calibrating_says_at_once_why_it_cannot(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("sys.argv", ["irkit-bench calibrate", "--only", "no such program"])
    assert calibrate.main() == 1
    assert "no small program has 'no such program' in its name" in capsys.readouterr().err
    monkeypatch.setenv("IRKIT_RATES_DIR", "")
    with pytest.raises(SystemExit):
        calibrate.main()
    assert "IRKIT_RATES_DIR is empty" in capsys.readouterr().err


def test_the_page_names_what_is_farthest_off():
    found = samples({"start": 100.0, "op": 0.03})[:3]
    for sample, estimate in zip(found, (1.0, 2.0, 10.0), strict=True):
        sample.estimate_ns = sample.measured_ns * estimate
    facts = {
        "suites": {"rTasks": calibrate.summary(found)},
        "rkernels": calibrate.table(found),
        "roperators": [{**s.to_json(), "ratio": s.ratio} for s in found],
    }
    page = cost_tables(facts)
    assert "| map.rows | 3 | 2.00 | 10.00 |" in page
    assert page.index("| p2 |") < page.index("| p1 |") < page.index("| p0 |")
