// RUN: irkit-opt %s --split-input-file -p 'rows-to-csr{dense=true}' | filecheck %s

// Trees look at any column of a row: it is made dense.
// CHECK-LABEL: func.func @main(%x_data: tensor<1x?xf32>, %x_indices: tensor<1x?xi32>, %x_starts: tensor<?xi64>, %x_ends: tensor<?xi64>)
// CHECK: %x = graph.csr_dense %x_data, %x_indices, %x_starts, %x_ends {columns = 3 : i64, initial = 0.000000e+00 : f64}
// CHECK-NEXT: graph.argmax %x
func.func @main(%x: tensor<?x3xf32>) -> tensor<?xi64> {
  %0 = graph.argmax %x {axis = 1 : i64, keepdims = false} : (tensor<?x3xf32>) -> tensor<?xi64>
  func.return %0 : tensor<?xi64>
}
