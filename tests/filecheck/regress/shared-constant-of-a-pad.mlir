// RUN: irkit-opt %s -p 'cse,fuse-elementwise' --check-semantics | filecheck %s
// `cse` takes the padding from an equal constant of the function: it is the padding all the same.

// CHECK:      %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK:      tensor.pad
// CHECK-NEXT: ^bb{{.*}}
// CHECK-NEXT: tensor.yield %[[ONE]] : f32
func.func @main(%x: tensor<2xf32>) -> (tensor<3xf32>, tensor<2xf32>) {
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<2xf32>
  %0 = linalg.fill ins(%one : f32) outs(%e : tensor<2xf32>) -> tensor<2xf32>
  %1 = tensor.pad %x low[1] high[0] {
  ^bb0(%i: index):
    %same = arith.constant 1.0 : f32
    tensor.yield %same : f32
  } : tensor<2xf32> to tensor<3xf32>
  func.return %1, %0 : tensor<3xf32>, tensor<2xf32>
}
