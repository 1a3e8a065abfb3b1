"""Inputs of a call, wherever they are, as arrays on the device that a program can take."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from irkit.runtime.cuda import arrays, driver
from irkit.runtime.cuda.driver import order
from irkit.runtime.cuda.extent import RESULT_BYTES, extent_probe
from irkit.runtime.cuda.look import Look
from irkit.runtime.cuda.memory import Pool
from irkit.runtime.input_policy import InputPolicy


class Inputs:
    """Those of one program. Raises InvalidInputError for what it cannot take."""

    def __init__(self, policy: InputPolicy, pool: Pool) -> None:
        self._policy, self._pool = policy, pool
        self._looked = [policy.restricts(number) for number in range(len(policy.ports))]
        self._looks: dict[int, Look] = {}

    def bind(self, number: int, value: Any, stream: Any) -> arrays.Bound:
        """Input `number`, copied to the device unless it is there."""
        if arrays.on_device(value):
            return self._on_device(number, value, stream)
        host = self._policy.host_array(number, value)
        buffer = self._pool.take(host.nbytes)
        if host.size:
            buffer.upload(host, stream)
        return arrays.Bound(buffer.address, host.shape, buffer)

    def _on_device(self, number: int, value: Any, stream: Any) -> arrays.Bound:
        facts = arrays.device_facts(value)
        self._policy.check_device_array(number, facts)
        if facts.producer is not None and facts.producer != (int(stream) or 1):
            order(driver.api().CUstream(facts.producer), stream)
        if self._looked[number]:
            self._look(number, value, facts.address, facts.shape, stream)
        return arrays.Bound(facts.address, facts.shape, value)

    def start(self, values: Sequence[Any], addresses: Sequence[int], stream: Any) -> None:
        """Queue a look at the values of arrays on the device, of which all else is known."""
        for number in itertools.compress(range(len(values)), self._looked):
            self._start(number, addresses[number], math.prod(values[number].shape), stream)

    def finish(self, values: Sequence[Any], addresses: Sequence[int], stream: Any) -> None:
        """Whether the program takes the values that the last look was started at; waits for that alone."""
        for number in itertools.compress(range(len(values)), self._looked):
            value = values[number]
            self._finish(number, value, addresses[number], value.shape, stream)

    def _look(
        self, number: int, value: Any, address: int, shape: Sequence[int], stream: Any
    ) -> None:
        self._start(number, address, math.prod(shape), stream)
        self._finish(number, value, address, shape, stream)

    def _start(self, number: int, address: int, count: int, stream: Any) -> None:
        check = self._policy.value_check(number)
        if check is None:
            return
        if number not in self._looks:
            self._looks[number] = Look(self._pool, check, stream)
        self._looks[number].start(address, count, stream)

    def _finish(
        self, number: int, value: Any, address: int, shape: Sequence[int], stream: Any
    ) -> None:
        look = self._looks.get(number)
        if look is not None and look.taken(stream):
            return
        # What is wrong, if anything is: the look asks for less than a column may have.
        probe = extent_probe(self._pool.device)
        dtype, count = self._policy.dtypes[number].name, math.prod(shape)
        extent = probe(address, count, dtype, self._pool.take(RESULT_BYTES), stream)
        facts = arrays.device_facts
        self._policy.check_extent(number, extent, lambda: arrays.host_copy(facts(value), stream))
