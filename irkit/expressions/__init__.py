"""Tensor expressions: operators as index expressions, in the manner of Tensor Comprehensions (Vasilache et
al. 2018).

The language alone: its text (`grammar.py`, `printing.py`), which names are what (`binding.py`), over which
ranges indices run (`ranges.py`), of which types values are (`typing.py`), and derivatives
(`derivative.py`). It knows NumPy's types and no IR: `graph.expression` is a statement of it as an op.
"""
