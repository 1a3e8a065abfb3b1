// RUN: not irkit-opt %s -p split-at-collectives 2>&1 | filecheck %s

// CHECK: '@main' has loops or calls beside collective ops
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %9 = arith.constant 9 : index
  %y = scf.for %i = %0 to %9 step %1 iter_args(%c = %x) -> (tensor<8xf32>) {
    %n = graph.neg %c : (tensor<8xf32>) -> tensor<8xf32>
    scf.yield %n : tensor<8xf32>
  }
  %z = dist.all_reduce %y {kind = "sum"} : (tensor<8xf32>) -> tensor<8xf32>
  func.return %z : tensor<8xf32>
}
