"""Random ONNX networks of many operators, compiled, against ONNX Runtime."""
