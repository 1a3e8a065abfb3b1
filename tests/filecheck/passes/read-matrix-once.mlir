// RUN: irkit-opt %s -p read-matrix-once | filecheck %s
// RUN: irkit-opt %s -p read-matrix-once --check-semantics > /dev/null
// RUN: irkit-opt %s -p 'read-matrix-once{device="h100"}' | filecheck %s --check-prefix=GPU
// RUN: irkit-opt %s -p read-matrix-once --remarks=missed 2>&1 | filecheck %s --check-prefix=MISSED

// A^T A x: a turn reads its rows for both; nothing else is kept. What is left is one block more.
// CHECK-LABEL: func.func @main
// CHECK:         %[[Y:.*]] = scf.for %[[I:.*]] = %{{.*}} iter_args(%[[S:.*]] = %{{.*}}) -> (tensor<1x2000xf64>) {
// CHECK-NEXT:      %[[B:.*]] = tensor.extract_slice %a[%[[I]], 0] [65, 2000] [1, 1]
// CHECK-NEXT:      %[[Z:.*]] = graph.matmul %[[B]], %x
// CHECK-NEXT:      %[[R:.*]] = graph.reshape %[[Z]]
// CHECK-NEXT:      %[[P:.*]] = graph.matmul %[[R]], %[[B]]
// CHECK-NEXT:      graph.add %[[S]], %[[P]]
// CHECK:         tensor.extract_slice %a[1040, 0] [61, 2000] [1, 1]
// CHECK:         graph.add %[[Y]]
// GPU-LABEL: func.func @main
// GPU-NOT:     scf.for
func.func @main(%a: tensor<1101x2000xf64>, %x: tensor<2000x1xf64>) -> tensor<1x2000xf64> {
  %z = graph.matmul %a, %x : (tensor<1101x2000xf64>, tensor<2000x1xf64>) -> tensor<1101x1xf64>
  %v = graph.reshape %z {shape = array<i64: 1101>} : (tensor<1101x1xf64>) -> tensor<1101xf64>
  %r = graph.reshape %v {shape = array<i64: 1, 1101>} : (tensor<1101xf64>) -> tensor<1x1101xf64>
  %y = graph.matmul %r, %a : (tensor<1x1101xf64>, tensor<1101x2000xf64>) -> tensor<1x2000xf64>
  func.return %y : tensor<1x2000xf64>
}

// Two products of their own, one of them of the transposed matrix.
// CHECK-LABEL: func.func @apart
// CHECK-NOT:     graph.transpose %a
// CHECK:         scf.for
// CHECK:         tensor.insert_slice
func.func @apart(%a: tensor<1040x2100xf64>, %x: tensor<2100x1xf64>, %r: tensor<1040x1xf64>) -> (tensor<1040x1xf64>, tensor<2100x1xf64>) {
  %t = graph.transpose %a {permutation = array<i64: 1, 0>} : (tensor<1040x2100xf64>) -> tensor<2100x1040xf64>
  %y = graph.matmul %t, %r : (tensor<2100x1040xf64>, tensor<1040x1xf64>) -> tensor<2100x1xf64>
  %z = graph.matmul %a, %x : (tensor<1040x2100xf64>, tensor<2100x1xf64>) -> tensor<1040x1xf64>
  func.return %z, %y : tensor<1040x1xf64>, tensor<2100x1xf64>
}

// The row is computed from all of the column's product.
// CHECK-LABEL: func.func @of_the_whole
// CHECK-NOT:     scf.for
// MISSED:      nothing that could be computed with it is a row times the matrix
func.func @of_the_whole(%a: tensor<1040x2100xf64>, %x: tensor<2100x1xf64>) -> tensor<1x2100xf64> {
  %z = graph.matmul %a, %x : (tensor<1040x2100xf64>, tensor<2100x1xf64>) -> tensor<1040x1xf64>
  %n = graph.neg %z : (tensor<1040x1xf64>) -> tensor<1040x1xf64>
  %r = graph.reshape %n {shape = array<i64: 1, 1040>} : (tensor<1040x1xf64>) -> tensor<1x1040xf64>
  %y = graph.matmul %r, %a : (tensor<1x1040xf64>, tensor<1040x2100xf64>) -> tensor<1x2100xf64>
  func.return %y : tensor<1x2100xf64>
}

// CHECK-LABEL: func.func @small
// CHECK-NOT:     scf.for
// MISSED:      the matrix stays in the caches, or has long rows
func.func @small(%a: tensor<40x21xf64>, %x: tensor<21x1xf64>) -> tensor<1x21xf64> {
  %z = graph.matmul %a, %x : (tensor<40x21xf64>, tensor<21x1xf64>) -> tensor<40x1xf64>
  %r = graph.reshape %z {shape = array<i64: 1, 40>} : (tensor<40x1xf64>) -> tensor<1x40xf64>
  %y = graph.matmul %r, %a : (tensor<1x40xf64>, tensor<40x21xf64>) -> tensor<1x21xf64>
  func.return %y : tensor<1x21xf64>
}
