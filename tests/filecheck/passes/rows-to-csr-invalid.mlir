// What cannot be computed of what is stored alone, named.
// RUN: irkit-opt %s --split-input-file --verify-diagnostics -p rows-to-csr

// expected-error@unknown {{'graph.matmul' of what is not 0 where nothing is stored}}
func.func @main(%x: tensor<?x3xf64>) -> tensor<?x1xf64> {
  %mean = arith.constant dense<[0.0, 5.0, 0.0]> : tensor<3xf64>
  %w = arith.constant dense<[[1.0], [2.0], [3.0]]> : tensor<3x1xf64>
  %0 = graph.sub %x, %mean : (tensor<?x3xf64>, tensor<3xf64>) -> tensor<?x3xf64>
  %1 = graph.matmul %0, %w : (tensor<?x3xf64>, tensor<3x1xf64>) -> tensor<?x1xf64>
  func.return %1 : tensor<?x1xf64>
}

// -----

// expected-error@unknown {{'graph.exp' of stored elements}}
func.func @main(%x: tensor<?x3xf64>) -> tensor<?xf64> {
  %0 = graph.exp %x : (tensor<?x3xf64>) -> tensor<?x3xf64>
  %1 = graph.reduce %0 {kind = "sum", axes = array<i64: 1>, keepdims = false} : (tensor<?x3xf64>) -> tensor<?xf64>
  func.return %1 : tensor<?xf64>
}

// -----

// The largest may be one that is not stored, or not.
// expected-error@unknown {{'graph.reduce' max of what is not stored}}
func.func @main(%x: tensor<?x3xf64>) -> tensor<?xf64> {
  %0 = graph.reduce %x {kind = "max", axes = array<i64: 1>, keepdims = false} : (tensor<?x3xf64>) -> tensor<?xf64>
  func.return %0 : tensor<?xf64>
}

// -----

// expected-error@unknown {{rows that are themselves a result}}
func.func @main(%x: tensor<?x3xf64>) -> tensor<?x3xf64> {
  func.return %x : tensor<?x3xf64>
}

// -----

// expected-error@unknown {{'graph.add' of stored elements with one value a row}}
func.func @main(%x: tensor<?x3xf64>) -> tensor<?xf64> {
  %0 = graph.reduce %x {kind = "sum", axes = array<i64: 1>, keepdims = true} : (tensor<?x3xf64>) -> tensor<?x1xf64>
  %1 = graph.add %x, %0 : (tensor<?x3xf64>, tensor<?x1xf64>) -> tensor<?x3xf64>
  %2 = graph.reduce %1 {kind = "sum", axes = array<i64: 1>, keepdims = false} : (tensor<?x3xf64>) -> tensor<?xf64>
  func.return %2 : tensor<?xf64>
}

// -----

// expected-error@unknown {{@main has not one argument, rows of some columns}}
func.func @main(%x: tensor<?x3xf64>, %y: tensor<?x3xf64>) -> tensor<?x3xf64> {
  func.return %y : tensor<?x3xf64>
}

// -----

// Each part is multiplied by rows of its own: those of a matrix that is computed are not cut out.
// expected-error@unknown {{'graph.matmul' of what is concatenated and of a computed matrix}}
func.func @main(%x: tensor<?x3xf64>) -> tensor<?x1xf64> {
  %all = arith.constant dense<[0, 1, 2]> : tensor<3xi64>
  %one = arith.constant dense<[1]> : tensor<1xi64>
  %w = arith.constant dense<[[1.0], [2.0], [3.0], [4.0]]> : tensor<4x1xf64>
  %0 = graph.gather %x, %all {axis = 1 : i64} : (tensor<?x3xf64>, tensor<3xi64>) -> tensor<?x3xf64>
  %1 = graph.gather %x, %one {axis = 1 : i64} : (tensor<?x3xf64>, tensor<1xi64>) -> tensor<?x1xf64>
  %2 = graph.concat(%0, %1) {axis = 1 : i64} : (tensor<?x3xf64>, tensor<?x1xf64>) -> tensor<?x4xf64>
  %3 = graph.exp %w : (tensor<4x1xf64>) -> tensor<4x1xf64>
  %4 = graph.matmul %2, %3 : (tensor<?x4xf64>, tensor<4x1xf64>) -> tensor<?x1xf64>
  func.return %4 : tensor<?x1xf64>
}
