// Each mistake is one message on stderr; exit code 1.
// RUN: not irkit-opt %s -p canonicalise 2>&1 | filecheck %s --check-prefix=PASS
// RUN: not irkit-opt %s -p 'cse, select-tree-stratgy' 2>&1 | filecheck %s --check-prefix=SECOND
// RUN: not irkit-opt %s -p 'dce{x=1}' 2>&1 | filecheck %s --check-prefix=OPTION
// RUN: not irkit-opt %s -p 'cse,,dce' 2>&1 | filecheck %s --check-prefix=COMMA
// RUN: not irkit-opt %s -p 'cse{' 2>&1 | filecheck %s --check-prefix=BRACE
// RUN: not irkit-opt %s --to=grpah 2>&1 | filecheck %s --check-prefix=LEVEL
// RUN: not irkit-opt %s -p cse --to=graph 2>&1 | filecheck %s --check-prefix=BOTH
// RUN: not irkit-opt %s --tming 2>&1 | filecheck %s --check-prefix=FLAG
// RUN: not irkit-opt %s -t numbba 2>&1 | filecheck %s --check-prefix=TARGET
// RUN: not irkit-opt %s -t 'numba{target=gpu}' 2>&1 | filecheck %s --check-prefix=DEVICE
// RUN: not irkit-opt %s other.mlir 2>&1 | filecheck %s --check-prefix=EXTRA
// RUN: not irkit-opt %s --seed 2>&1 | filecheck %s --check-prefix=VALUE
// RUN: not irkit-opt %s --explain-pass canonicalise 2>&1 | filecheck %s --check-prefix=EXPLAIN

// PASS:          <pipeline>:1:1: error: unknown pass 'canonicalise'; did you mean 'canonicalize'?
// PASS-NEXT:       canonicalise
// PASS-NEXT:       ^~~~~~~~~~~~
// PASS-NOT:      {{.}}
// SECOND:        <pipeline>:1:6: error: unknown pass 'select-tree-stratgy'
// OPTION:        <pipeline>:1:5: error: pass 'dce' has no option 'x'; it has none
// COMMA:         <pipeline>:1:5: error: expected pass name here
// BRACE:         <pipeline>:1:5: error: expected argument name here
// LEVEL:         irkit-opt: error: argument --to: invalid choice: 'grpah'
// BOTH:          irkit-opt: error: give either a pipeline (-p) or a level (--to), not both
// FLAG:          irkit-opt: error: unknown flag '--tming'; did you mean '--timing'?
// TARGET:        irkit-opt: error: unknown target 'numbba': there are mlir and numba; did you mean 'numba'?
// DEVICE:        irkit-opt: error: target 'numba' expects target=cpu or target=cuda, got 'numba{target=gpu}'
// EXTRA:         irkit-opt: error: unexpected argument 'other.mlir'
// VALUE:         irkit-opt: error: argument --seed: expected one argument
// EXPLAIN:       error: unknown pass 'canonicalise'; did you mean 'canonicalize'?
builtin.module {}
