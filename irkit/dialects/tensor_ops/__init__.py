"""What irkit knows of each tensor-level op: one model per op, of one interface, a file per idea."""
