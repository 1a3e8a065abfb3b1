"""Fuzzers: broken `.mlir` text, broken ONNX models, random programs. See `__main__.py`."""
