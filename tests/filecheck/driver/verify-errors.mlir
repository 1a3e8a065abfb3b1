// RUN: irkit-opt %s --split-input-file --verify-diagnostics
// RUN: not irkit-opt %s 2>&1 | filecheck %s

// CHECK:      verify-errors.mlir:[[# @LINE + 6]]:8: error: 'graph.relu' expects result of type tensor<4xf32>, got tensor<5xf32>
// CHECK-NEXT: %y = graph.relu
// CHECK-NEXT: ^~~~~~~~~~
// CHECK-NOT:  {{.}}
func.func @result_type(%x: tensor<4xf32>) {
  // expected-error@+1 {{'graph.relu' expects result of type tensor<4xf32>, got tensor<5xf32>}}
  %y = graph.relu %x : (tensor<4xf32>) -> tensor<5xf32>
  func.return
}

// -----

func.func @return_type(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{expected arguments to have the same types as the function output types}}
  func.return
}

// -----

func.func @terminator(%x: tensor<4xf32>) {
  // expected-error@+1 {{graph.relu terminates block in single-block region but is not a terminator}}
  %y = graph.relu %x : (tensor<4xf32>) -> tensor<4xf32>
}

// -----

// expected-error@+1 {{irkit.state of @main: argument 0 ('h') is tensor<4xf32>, result 0 is tensor<4xf64>}}
func.func @main(%h: tensor<4xf32>, %x: tensor<4xf64>) -> tensor<4xf64> attributes {irkit.inputs = ["h", "x"], irkit.state = array<i64: 0, 0>} {
  func.return %x : tensor<4xf64>
}

// -----

func.func @asks(%a: tensor<4xf64>, %go: tensor<i1>) -> tensor<4xf64> {
  // expected-error@+1 {{'scf.while': block arguments with wrong type, expected tensor<4xf64>, got tensor<3xf64>}}
  %r = scf.while (%x = %a) : (tensor<4xf64>) -> (tensor<4xf64>) {
    %e = tensor.extract %go[] : tensor<i1>
    scf.condition(%e) %x : tensor<4xf64>
  } do {
  ^bb0(%y: tensor<3xf64>):
    scf.yield %a : tensor<4xf64>
  }
  func.return %r : tensor<4xf64>
}
