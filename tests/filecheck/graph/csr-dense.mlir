// Dense rows of a CSR matrix: forms, and all levels.
// RUN: irkit-opt %s | irkit-opt | filecheck %s
// RUN: irkit-opt %s --check-semantics --to=schedule | filecheck %s --check-prefix=SCHEDULE

// What is done to each element behind it is done where it is stored.
// CHECK-LABEL: func.func @main
// CHECK: %y = graph.csr_dense %d, %i, %s, %e {columns = 5 : i64, initial = 0x7ff8000000000000 : f64}
// SCHEDULE: task.roperator @csr_dense_0(
// SCHEDULE-SAME: sources = "graph.csr_dense, graph.cast", rkernel = "csr_dense.rows"
// SCHEDULE: te.csr_dense
// SCHEDULE: arith.extf
// SCHEDULE: task.append @csr_dense_0
func.func @main(%d: tensor<1x?xf32>, %i: tensor<1x?xi32>, %s: tensor<?xi64>, %e: tensor<?xi64>) -> tensor<?x5xf64> attributes {irkit.dims = [["stored"], ["stored"], ["batch"], ["batch"]]} {
  %y = graph.csr_dense %d, %i, %s, %e {columns = 5 : i64, initial = 0x7ff8000000000000 : f64} : (tensor<1x?xf32>, tensor<1x?xi32>, tensor<?xi64>, tensor<?xi64>) -> tensor<?x5xf32>
  %z = graph.cast %y {to = f64} : (tensor<?x5xf32>) -> tensor<?x5xf64>
  func.return %z : tensor<?x5xf64>
}
