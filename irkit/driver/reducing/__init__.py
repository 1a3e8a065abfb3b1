"""Making a failing module small, as mlir-reduce does: what is left out, what counts as the same failure."""
