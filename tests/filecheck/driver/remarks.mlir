// RUN: irkit-opt %s -p canonicalize --remarks=missed,applied --remarks-filter='/(R.*ToOwn|dead)' --verify-diagnostics
// RUN: irkit-opt %s -p canonicalize --remarks=applied 2>&1 | filecheck %s --check-prefix=APPLIED
// RUN: irkit-opt %s -p canonicalize --remarks=missed --remarks-filter=canonicalize/ReshapeOf 2>&1 | filecheck %s --check-prefix=FILTER
// RUN: irkit-opt %s -p canonicalize --statistics 2>&1 | filecheck %s --check-prefix=COUNTS
// RUN: irkit-opt %s -p canonicalize --statistics --remarks=missed --report=%t.json && cat %t.json | filecheck %s --check-prefix=JSON
// RUN: not irkit-opt %s -p canonicalize,test-fail --report=%t.failed.json --timing 2>&1 | filecheck %s --check-prefix=FAILED
// RUN: test -e %t.failed.json
// RUN: irkit-opt %s -p canonicalize 2>&1 | filecheck %s --check-prefix=OFF
// RUN: not irkit-opt %s -p canonicalize --remarks=mised 2>&1 | filecheck %s --check-prefix=KIND
// RUN: not irkit-opt %s -p canonicalize --remarks=missed --remarks-filter=( 2>&1 | filecheck %s --check-prefix=REGEX

// APPLIED:     remarks.mlir:[[# @LINE + 28]]:8: remark: [applied] canonicalize/ReshapeOfReshape: 'graph.reshape'
// APPLIED-NOT: [missed]

// FILTER:      remark: [missed] canonicalize/ReshapeOfReshape: 'graph.reshape': the operand is no reshape
// FILTER-NOT:  [applied]

// COUNTS:      ===- patterns -===
// COUNTS:      1 1 0 canonicalize/dead op

// JSON:      "seconds":
// JSON:      "pattern": "ReshapeOfReshape",
// JSON-NEXT: "matched": 4,
// JSON-NEXT: "applied": 1,
// JSON-NEXT: "missed": 3

// FAILED:     %  test-fail
// FAILED:     error: pass 'test-fail' failed

// OFF-NOT: remark

// KIND:  irkit-opt: error: --remarks: expected applied or missed, got 'mised'; did you mean 'missed'?
// REGEX: irkit-opt: error: --remarks-filter: missing ), unterminated subpattern
func.func @main(%x: tensor<8xf32>) -> tensor<2x4xf32> {
  // expected-remark@below {{[applied] canonicalize/dead op: 'graph.reshape'}}
  // expected-remark@below {{ReshapeToOwnShape: 'graph.reshape': the type changes from tensor<8xf32> to tensor<4x2xf32>}}
  %0 = graph.reshape %x {shape = array<i64: 4, 2>} : (tensor<8xf32>) -> tensor<4x2xf32>
  // expected-remark@below {{the type changes from tensor<4x2xf32> to tensor<2x4xf32>}}
  // expected-remark@below {{the type changes from tensor<8xf32> to tensor<2x4xf32>}}
  %1 = graph.reshape %0 {shape = array<i64: 2, 4>} : (tensor<4x2xf32>) -> tensor<2x4xf32>
  func.return %1 : tensor<2x4xf32>
}
