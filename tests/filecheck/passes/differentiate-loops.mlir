// RUN: irkit-opt %s -p 'differentiate{mode=reverse with_respect_to=x,w,u,s}' | filecheck %s
// RUN: irkit-opt %s -p 'differentiate{mode=reverse with_respect_to=x,w,u,s}' | irkit-opt - --to=schedule --device=cpu2 --check-semantics > /dev/null

// The input's product stands before the loop, which keeps what a round begins with and the sum of both products. The
// loop back reads these, makes no sum anew, and hands on the cotangents of the state and of the input's product; those of
// u are added up behind it, by one product of all rounds.
// CHECK-LABEL: func.func @main
// CHECK:         %[[P:.*]] = graph.matmul %{{.*}}, %w : (tensor<9x4xf64>, tensor<4x8xf64>) -> tensor<9x8xf64>
// CHECK:         %r, %[[H:.*]], %[[T:.*]] = scf.for
// CHECK-SAME:      -> (tensor<1x8xf64>, tensor<9x1x8xf64>, tensor<9x1x8xf64>)
// CHECK:           tensor.extract_slice %{{.*}}[%{{.*}}, 0] [1, 8] [1, 1]
// CHECK:           graph.matmul
// CHECK:           graph.tanh
// CHECK:           scf.yield
// CHECK:         %{{.*}}, %{{.*}}, %[[D:.*]] = scf.for
// CHECK-SAME:      -> (tensor<1x8xf64>, tensor<9x8xf64>, tensor<9x1x8xf64>)
// CHECK:           tensor.extract_slice %[[T]][
// CHECK:           graph.gemm %{{.*}}, %u {trans_a = false, trans_b = true,
// CHECK-NOT:       graph.{{gemm|matmul}}
// CHECK:           scf.yield
// CHECK:         %[[A:.*]] = graph.reshape %[[H]]
// CHECK:         %[[C:.*]] = graph.reshape %[[D]]
// CHECK:         graph.gemm %[[A]], %[[C]] {trans_a = true, trans_b = false, {{.*}} : (tensor<9x8xf64>, tensor<9x8xf64>) -> tensor<8x8xf64>
func.func @main(%x: tensor<9x4xf64>, %w: tensor<4x8xf64>, %u: tensor<8x8xf64>, %s: tensor<1x8xf64>) -> tensor<1x8xf64> attributes {
  irkit.inputs = ["x", "w", "u", "s"]
} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %r = scf.for %i = %c0 to %c9 step %c1 iter_args(%h = %s) -> (tensor<1x8xf64>) {
    %row = tensor.extract_slice %x[%i, 0] [1, 4] [1, 1] : tensor<9x4xf64> to tensor<1x4xf64>
    %p = graph.matmul %row, %w : (tensor<1x4xf64>, tensor<4x8xf64>) -> tensor<1x8xf64>
    %q = graph.matmul %h, %u : (tensor<1x8xf64>, tensor<8x8xf64>) -> tensor<1x8xf64>
    %t = graph.add %p, %q : (tensor<1x8xf64>, tensor<1x8xf64>) -> tensor<1x8xf64>
    %y = graph.tanh %t : (tensor<1x8xf64>) -> tensor<1x8xf64>
    scf.yield %y : tensor<1x8xf64>
  }
  func.return %r : tensor<1x8xf64>
}
