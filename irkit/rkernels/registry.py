"""The registry of rKernels: which there are for a target and a root.

This module and the tables it reads import no Numba. A user registers an rKernel of their own with
`register`, and a family of them with `irkit.rkernels.families.register`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable

from irkit.dialects.roots import Root
from irkit.errors import UnsupportedError
from irkit.rkernels.families import families_for
from irkit.rkernels.rkernel import RKernel, Target

_REGISTERED: dict[tuple[Target, str], list[RKernel]] = {}
_loaded: set[Target] = set()


def register(rkernel: RKernel) -> RKernel:
    """Add an rKernel; the newest of a name wins."""
    known = _REGISTERED.setdefault((rkernel.target, rkernel.family), [])
    known[:] = [k for k in known if k.variant != rkernel.variant]
    known.append(rkernel)
    return rkernel


def _load(target: Target) -> None:
    if target in _loaded:
        return
    _loaded.add(target)
    package = importlib.import_module(f"irkit.rkernels.{target}")
    for found in sorted(pkgutil.iter_modules(package.__path__), key=lambda m: m.name):
        module = importlib.import_module(f"{package.__name__}.{found.name}")
        kernels: Iterable[RKernel] = module.RKERNELS
        for rkernel in kernels:
            register(rkernel)


def candidates(target: Target, root: Root) -> list[RKernel]:
    """rKernels that can compute `root` on `target`, those of its own family first.

    Raises UnsupportedError if there is none.
    """
    _load(target)
    found = [
        k
        for family in families_for(root)
        for k in _REGISTERED.get((target, family.name), ())
        if k.legal(root)
    ]
    if not found:
        raise UnsupportedError(f"no rKernel of family '{root.family}' for {target}")
    return found


def find(target: Target, name: str) -> RKernel:
    """The rKernel called `family.variant`. Raises UnsupportedError if there is none."""
    _load(target)
    for kernels in _REGISTERED.values():
        for rkernel in kernels:
            if rkernel.target == target and rkernel.name == name:
                return rkernel
    known = sorted(k.name for (t, _), ks in _REGISTERED.items() if t == target for k in ks)
    raise UnsupportedError(f"rKernel '{name}' for {target}; there are {', '.join(known)}")
