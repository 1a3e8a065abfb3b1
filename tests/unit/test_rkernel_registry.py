"""The registry of rKernels is whole, or is filled again."""

import dataclasses
import importlib

import pytest

from irkit.rkernels import registry


@pytest.fixture
def empty(monkeypatch):
    monkeypatch.setattr(registry, "_REGISTERED", {})
    monkeypatch.setattr(registry, "_loaded", set())


def test_an_interrupt_while_it_is_filled_leaves_nothing_out(empty, monkeypatch):
    whole = {k.name for k in registry._own("cpu")}
    imported = importlib.import_module

    def interrupted(name):
        if name.endswith(".pixels"):
            raise KeyboardInterrupt
        return imported(name)

    with monkeypatch.context() as patch:
        patch.setattr(registry.importlib, "import_module", interrupted)
        with pytest.raises(KeyboardInterrupt):
            registry.registered("cpu")
    assert {k.name for k in registry.registered("cpu")} == whole


def test_an_rkernel_that_was_registered_first_is_newer_than_those_that_there_are(empty):
    own = next(k for k in registry._own("cpu") if k.name == "softmax.buffered")
    mine = registry.register(dataclasses.replace(own))
    assert registry.find("cpu", "softmax.buffered") is mine
