"""What NumPy's functions are in graph ops: compositions, for whatever front end speaks of arrays.

Each takes an `Ops` and values whose dtypes are already those of NumPy's loop (`np.ufunc.resolve_dtypes` says
which), and gives NumPy's results: bit for bit where a function is one of IEEE 754's or of integers, else
within a few units in the last place. What NumPy leaves open (which zero a maximum is, a float that no integer
holds, the sign of NaN) is what the graph op says.
"""

from irkit.dialects.graph.composition import Ops
from irkit.frontends.array_ops.elementwise import SPECIAL, UFUNCS

__all__ = ["SPECIAL", "UFUNCS", "Ops"]
