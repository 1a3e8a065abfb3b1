// RUN: not irkit-opt %s -p 'place-in-group{rank=1 size=3}' 2>&1 | filecheck %s
// RUN: not irkit-opt %s -p 'place-in-group{rank=2 size=2}' 2>&1 | filecheck %s --check-prefix=RANK

// CHECK: 'dist.all_gather' of 2 ranks in a group of 3
// RANK: argument 'rank' of pass 'place-in-group': expected 0 to 1, got 2
func.func @main(%x: tensor<8xf32>) -> tensor<2x8xf32> {
  %y = dist.all_gather %x {size = 2 : i64} : (tensor<8xf32>) -> tensor<2x8xf32>
  func.return %y : tensor<2x8xf32>
}
