// RUN: irkit-opt %s -p propagate-fastmath | filecheck %s

// CHECK-LABEL: func.func @granted
// CHECK: math.exp %{{.*}} fastmath<afn> : f32
// CHECK: arith.addf %{{.*}}, %{{.*}} : f32
// CHECK: math.powf %{{.*}}, %{{.*}} fastmath<afn> : f32
// CHECK: math.sqrt %{{[^ ]*}} : f32
func.func @granted(%x: tensor<8xf32>) -> tensor<8xf32> attributes {irkit.fastmath = #arith.fastmath<afn>} {
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %0 = math.exp %a : f32
    %1 = arith.addf %0, %a : f32
    %2 = math.powf %1, %a : f32
    %3 = math.sqrt %2 : f32
    linalg.yield %3 : f32
  } -> tensor<8xf32>
  func.return %y : tensor<8xf32>
}

// CHECK-LABEL: func.func @powers
// CHECK: ^{{.*}}([[a:%[^ ]*]]: f32, %{{.*}}: f32):
// CHECK-NOT: math.powf
// CHECK: [[s:%[^ ]*]] = arith.mulf [[a]], [[a]] : f32
// CHECK: [[q:%[^ ]*]] = arith.mulf [[s]], [[s]] : f32
// CHECK: [[c:%[^ ]*]] = arith.mulf [[q]], [[s]] : f32
// CHECK: math.powf [[c]], %{{.*}} fastmath<afn> : f32
func.func @powers(%x: tensor<8xf32>) -> tensor<8xf32> attributes {irkit.fastmath = #arith.fastmath<afn>} {
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %two = arith.constant 2.0 : f32
    %three = arith.constant 3.0 : f32
    %half = arith.constant 0.5 : f32
    %0 = math.powf %a, %two : f32
    %1 = math.powf %0, %three : f32
    %2 = math.powf %1, %half : f32
    linalg.yield %2 : f32
  } -> tensor<8xf32>
  func.return %y : tensor<8xf32>
}

// CHECK-LABEL: func.func @strict
// CHECK: math.exp %{{[^ ]*}} : f32
// CHECK: math.powf
func.func @strict(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %0 = math.exp %a : f32
    %two = arith.constant 2.0 : f32
    %1 = math.powf %0, %two : f32
    linalg.yield %1 : f32
  } -> tensor<8xf32>
  func.return %y : tensor<8xf32>
}
