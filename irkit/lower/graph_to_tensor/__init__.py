"""From what a model means to what each op computes: one file per op group, one rule per op."""
