"""cuBLASLt by nvmath-python's bindings: products that mode `per-op` has computed by the library.

Row-major matrices are column-major ones transposed, so D is asked for as D' = B' A' + bias + addend', with
the bias along its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from irkit.errors import DeviceError
from irkit.schedule.library_call import NONE, LibraryCall

ALIGNMENT = 16
"""Of every operand, as inputs of a program have it."""
_MOST_WORKSPACE = 32 << 20
# cudaDataType_t and cublasComputeType_t, cublasOperation_t.
_TYPES = {"float32": 0, "float16": 2, "bfloat16": 14}
_COMPUTE = {
    "float32": "COMPUTE_32F",
    "ieee": "COMPUTE_32F_PEDANTIC",
    "bf16": "COMPUTE_32F_FAST_16BF",
    "f16": "COMPUTE_32F_FAST_16F",
}
_TRANSPOSE = 1


class CublasLt:
    """The library, opened once. Raises DeviceError where it is not installed, or does not load."""

    def __init__(self) -> None:
        try:
            self.api: Any = import_module("nvmath.bindings.cublasLt")
            self.types: Any = import_module("nvmath.bindings.cublas").ComputeType
        except ImportError as problem:
            reason = f"nvmath-python is not installed ({problem}): pip install 'irkit[library]'"
            raise DeviceError(f"cublaslt: {reason}") from None
        try:
            self.version = int(self.api.get_version())
            self.handle: int = self.api.create()
        except RuntimeError as problem:
            raise DeviceError(f"cublaslt does not load: {problem}") from None

    def plan(self, call: LibraryCall) -> Plan:
        """How to compute a call, by the algorithm that the library holds for the fastest.

        Raises DeviceError if it has none.
        """
        try:
            return Plan(self, call)
        except RuntimeError as problem:
            raise DeviceError(f"cublaslt: {problem}") from None


@cache
def cublaslt() -> CublasLt:
    """The library. Raises DeviceError where it is not installed, or does not load."""
    return CublasLt()


class Plan:
    """A product with its descriptors, its algorithm, and the workspace that this takes, in bytes.

    The bias stands in a descriptor, so one thread at a time may launch it.
    """

    def __init__(self, library: CublasLt, call: LibraryCall) -> None:
        self.call, self._library = call, library
        api = library.api
        halves = call.element != "float32"
        compute = "COMPUTE_32F" if halves else _COMPUTE[call.precision]
        element, result = _TYPES[call.element], _TYPES[call.result]
        self._product: int = api.matmul_desc_create(
            int(getattr(library.types, compute)), _TYPES["float32"]
        )
        self._attributes: Any = api.MatmulDescAttribute
        if call.transposed:
            self._describe(self._attributes.TRANSA, np.int32(_TRANSPOSE))
        if call.bias != NONE:
            self._describe(self._attributes.EPILOGUE, np.uint32(api.Epilogue.BIAS))
        b = (call.k, call.n) if call.transposed else (call.n, call.k)
        self._b: int = api.matrix_layout_create(element, *b, b[0])
        self._a: int = api.matrix_layout_create(element, call.k, call.m, call.k)
        self._d: int = api.matrix_layout_create(result, call.n, call.m, call.n)
        # Read by the host when a product is queued.
        self._one, self._beta = np.ones(1, np.float32), np.zeros(1, np.float32)
        self._beta[0] = call.addend != NONE
        self._algorithm: Any = api.MatmulHeuristicResult(1)
        self._choose()
        self.workspace_bytes = int(self._algorithm.workspace_size)

    def _describe(self, attribute: Any, value: Any) -> None:
        held = np.array([value])
        self._library.api.matmul_desc_set_attribute(
            self._product, int(attribute), held.ctypes.data, held.nbytes
        )

    def _choose(self) -> None:
        api, count = self._library.api, np.zeros(1, np.int32)
        preference = api.matmul_preference_create()
        kinds = api.MatmulPreferenceAttribute
        limits: dict[Any, Any] = {kinds.MAX_WORKSPACE_BYTES: np.array([_MOST_WORKSPACE], np.uint64)}
        for name in "ABCD":
            kind = getattr(kinds, f"MIN_ALIGNMENT_{name}_BYTES")
            limits[kind] = np.array([ALIGNMENT], np.uint32)
        try:
            for kind, held in limits.items():
                api.matmul_preference_set_attribute(
                    preference, int(kind), held.ctypes.data, held.nbytes
                )
            api.matmul_algo_get_heuristic(
                self._library.handle, self._product, self._b, self._a, self._d, self._d,
                preference, 1, self._algorithm.ptr, count.ctypes.data,
            )  # fmt: skip
        finally:
            api.matmul_preference_destroy(preference)
        if not count[0]:
            raise DeviceError(f"cublaslt has no algorithm for {self.call}")

    def launch(self, addresses: Sequence[int], workspace: int, stream: int) -> None:
        """Queue the product of the operands at `addresses`, by their numbers, all multiples of 16 bytes."""
        call, api = self.call, self._library.api
        if call.bias != NONE:
            self._describe(self._attributes.BIAS_POINTER, np.int64(addresses[call.bias]))
        d = addresses[call.d]
        addend = addresses[call.addend] if call.addend != NONE else d
        try:
            api.matmul(
                self._library.handle, self._product, self._one.ctypes.data,
                addresses[call.b], self._b, addresses[call.a], self._a, self._beta.ctypes.data,
                addend, self._d, d, self._d,
                self._algorithm.ptr, workspace, self.workspace_bytes, stream,
            )  # fmt: skip
        except RuntimeError as problem:
            raise DeviceError(f"cublaslt: {problem}") from None

    def __del__(self) -> None:
        # Descriptors are memory of the host.
        api = self._library.api
        for name, layouts in (("_product", "matmul_desc"), ("_a", "matrix_layout"),
                              ("_b", "matrix_layout"), ("_d", "matrix_layout")):  # fmt: skip
            if hasattr(self, name):
                getattr(api, f"{layouts}_destroy")(getattr(self, name))
