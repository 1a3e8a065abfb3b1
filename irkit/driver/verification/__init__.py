"""What xDSL's own verifier leaves out: dominance, levels, and dialects as IRDL for MLIR's verifier."""
