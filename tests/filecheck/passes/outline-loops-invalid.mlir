// RUN: not irkit-opt %s -p outline-loops 2>&1 | filecheck %s

// CHECK: error: pass 'outline-loops' failed: 'scf.for' with bounds that are no constants
func.func @main(%a: tensor<5x3xf64>, %n: index) -> tensor<5x3xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a) -> (tensor<5x3xf64>) {
    %y = graph.add %x, %x : (tensor<5x3xf64>, tensor<5x3xf64>) -> tensor<5x3xf64>
    scf.yield %y : tensor<5x3xf64>
  }
  func.return %r : tensor<5x3xf64>
}
