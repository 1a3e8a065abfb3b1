// RUN: irkit-opt %s -p 'convert-graph-to-tensor,canonicalize,cse,read-matrix-once{device="cpu2"},canonicalize' | filecheck %s
// RUN: irkit-opt %s -p 'convert-graph-to-tensor,canonicalize,cse,read-matrix-once{device="cpu2"}' --check-semantics > /dev/null
// RUN: irkit-opt %s -p 'convert-graph-to-tensor,canonicalize,cse,read-matrix-once{device="h100"}' | filecheck %s --check-prefix=GPU
// RUN: irkit-opt %s -p 'convert-graph-to-tensor,canonicalize,cse,read-matrix-once{device="cpu2"}' --remarks=missed 2>&1 | filecheck %s --check-prefix=MISSED

// A^T A x: the row is the column's product, which nothing else reads.
// CHECK-LABEL: func.func @main
// CHECK:         %[[B:.*]] = te.gemvt %a, %{{.*}} {parts = 2 : i64} : (tensor<500x2000xf64>, tensor<2000xf64>) -> tensor<2x2250xf64>
// CHECK:         %[[S:.*]] = tensor.extract_slice %[[B]][0, 250] [2, 2000] [1, 1]
// CHECK:         linalg.generic {{.*}} "reduction"]} ins(%[[S]] : tensor<2x2000xf64>)
// CHECK-NOT:     tensor<500xf64>
// GPU-NOT:     te.gemvt
func.func @main(%a: tensor<500x2000xf64>, %x: tensor<2000x1xf64>) -> tensor<1x2000xf64> {
  %z = graph.matmul %a, %x : (tensor<500x2000xf64>, tensor<2000x1xf64>) -> tensor<500x1xf64>
  %v = graph.reshape %z {shape = array<i64: 500>} : (tensor<500x1xf64>) -> tensor<500xf64>
  %r = graph.reshape %v {shape = array<i64: 1, 500>} : (tensor<500xf64>) -> tensor<1x500xf64>
  %y = graph.matmul %r, %a : (tensor<1x500xf64>, tensor<500x2000xf64>) -> tensor<1x2000xf64>
  func.return %y : tensor<1x2000xf64>
}

// Two products of their own; of an odd number of rows the parts' are put one behind another. What reads the
// first before the second is there comes behind both.
// CHECK-LABEL: func.func @apart
// CHECK:         %[[B:.*]] = te.gemvt %a, %{{.*}}, %{{.*}} {parts = 2 : i64}
// CHECK:         tensor.extract_slice %[[B]][0, 251] [2, 2100] [1, 1]
// CHECK:         tensor.extract_slice %[[B]][0, 0] [1, 250] [1, 1]
// CHECK:         tensor.extract_slice %[[B]][1, 0] [1, 251] [1, 1]
// CHECK:         tensor.concat
// CHECK:         math.absf
func.func @apart(%a: tensor<501x2100xf64>, %x: tensor<2100x1xf64>, %r: tensor<1x501xf64>) -> (tensor<501x1xf64>, tensor<1x2100xf64>) {
  %z = graph.matmul %a, %x : (tensor<501x2100xf64>, tensor<2100x1xf64>) -> tensor<501x1xf64>
  %n = graph.abs %z : (tensor<501x1xf64>) -> tensor<501x1xf64>
  %y = graph.matmul %r, %a : (tensor<1x501xf64>, tensor<501x2100xf64>) -> tensor<1x2100xf64>
  func.return %n, %y : tensor<501x1xf64>, tensor<1x2100xf64>
}

// The row is computed from the column's product.
// CHECK-LABEL: func.func @of_the_whole
// CHECK-NOT:     te.gemvt
// MISSED:      nothing that could be computed with it is a row times the matrix
func.func @of_the_whole(%a: tensor<500x2100xf64>, %x: tensor<2100x1xf64>) -> tensor<1x2100xf64> {
  %z = graph.matmul %a, %x : (tensor<500x2100xf64>, tensor<2100x1xf64>) -> tensor<500x1xf64>
  %n = graph.neg %z : (tensor<500x1xf64>) -> tensor<500x1xf64>
  %r = graph.reshape %n {shape = array<i64: 1, 500>} : (tensor<500x1xf64>) -> tensor<1x500xf64>
  %y = graph.matmul %r, %a : (tensor<1x500xf64>, tensor<500x2100xf64>) -> tensor<1x2100xf64>
  func.return %y : tensor<1x2100xf64>
}

// The column is computed from the row's product: only after all rows is that there.
// CHECK-LABEL: func.func @row_first
// CHECK-NOT:     te.gemvt
func.func @row_first(%a: tensor<500x2100xf64>, %r: tensor<1x500xf64>) -> tensor<500x1xf64> {
  %y = graph.matmul %r, %a : (tensor<1x500xf64>, tensor<500x2100xf64>) -> tensor<1x2100xf64>
  %x = graph.reshape %y {shape = array<i64: 2100, 1>} : (tensor<1x2100xf64>) -> tensor<2100x1xf64>
  %z = graph.matmul %a, %x : (tensor<500x2100xf64>, tensor<2100x1xf64>) -> tensor<500x1xf64>
  func.return %z : tensor<500x1xf64>
}

// CHECK-LABEL: func.func @small
// CHECK-NOT:     te.gemvt
// MISSED:      the matrix stays in the caches
func.func @small(%a: tensor<40x21xf64>, %x: tensor<21x1xf64>, %r: tensor<1x40xf64>) -> (tensor<40x1xf64>, tensor<1x21xf64>) {
  %z = graph.matmul %a, %x : (tensor<40x21xf64>, tensor<21x1xf64>) -> tensor<40x1xf64>
  %y = graph.matmul %r, %a : (tensor<1x40xf64>, tensor<40x21xf64>) -> tensor<1x21xf64>
  func.return %z, %y : tensor<40x1xf64>, tensor<1x21xf64>
}

// CHECK-LABEL: func.func @long_rows
// CHECK-NOT:     te.gemvt
// MISSED:      its rows are too long for a cache
func.func @long_rows(%a: tensor<16x32769xf64>, %x: tensor<32769x1xf64>, %r: tensor<1x16xf64>) -> (tensor<16x1xf64>, tensor<1x32769xf64>) {
  %z = graph.matmul %a, %x : (tensor<16x32769xf64>, tensor<32769x1xf64>) -> tensor<16x1xf64>
  %y = graph.matmul %r, %a : (tensor<1x16xf64>, tensor<16x32769xf64>) -> tensor<1x32769xf64>
  func.return %z, %y : tensor<16x1xf64>, tensor<1x32769xf64>
}
