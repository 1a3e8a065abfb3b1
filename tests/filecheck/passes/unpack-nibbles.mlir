// RUN: irkit-opt %s -p unpack-nibbles | filecheck %s
// RUN: irkit-opt %s -p 'unpack-nibbles{device="h100"}' | filecheck %s --check-prefix=GPU
// RUN: irkit-opt %s -p unpack-nibbles --remarks=missed 2>&1 | filecheck %s --check-prefix=REMARK

// REMARK: it is faster in 4 bits
// REMARK: its matrix is not known

// CHECK-LABEL: func.func @few
// CHECK:         graph.nibble_matmul
// GPU-LABEL:     func.func @few
// GPU:           graph.matmul %x, %{{.*}} : (tensor<2x3x256xf32>, tensor<256x256xf32>) -> tensor<2x3x256xf32>
func.func @few(%x: tensor<2x3x256xf32>) -> tensor<2x3x256xf32> {
  %q = arith.constant dense<18> : tensor<4x128x64xui8>
  %s = arith.constant dense<0.5> : tensor<4x8x64xf32>
  %y = graph.nibble_matmul %x, %q, %s {block = 32 : i64, columns = 256 : i64} : (tensor<2x3x256xf32>, tensor<4x128x64xui8>, tensor<4x8x64xf32>) -> tensor<2x3x256xf32>
  func.return %y : tensor<2x3x256xf32>
}

// Of more rows floats are as fast.
// CHECK-LABEL: func.func @many
// CHECK-NOT:     nibble
// CHECK:         graph.matmul
func.func @many(%x: tensor<65x256xf32>) -> tensor<65x256xf32> {
  %q = arith.constant dense<18> : tensor<4x128x64xui8>
  %s = arith.constant dense<0.5> : tensor<4x8x64xf32>
  %y = graph.nibble_matmul %x, %q, %s {block = 32 : i64, columns = 256 : i64} : (tensor<65x256xf32>, tensor<4x128x64xui8>, tensor<4x8x64xf32>) -> tensor<65x256xf32>
  func.return %y : tensor<65x256xf32>
}

// An open number of rows.
// CHECK-LABEL: func.func @open
// CHECK-NOT:     nibble
// CHECK:         graph.matmul
func.func @open(%x: tensor<?x256xf32>) -> tensor<?x256xf32> {
  %q = arith.constant dense<18> : tensor<4x128x64xui8>
  %s = arith.constant dense<0.5> : tensor<4x8x64xf32>
  %y = graph.nibble_matmul %x, %q, %s {block = 32 : i64, columns = 256 : i64} : (tensor<?x256xf32>, tensor<4x128x64xui8>, tensor<4x8x64xf32>) -> tensor<?x256xf32>
  func.return %y : tensor<?x256xf32>
}

// A matrix that stays in a cache.
// CHECK-LABEL: func.func @small
// CHECK-NOT:     nibble
// CHECK:         arith.constant {{.*}} : tensor<64x64xf32>
// CHECK-NEXT:    graph.matmul
func.func @small(%x: tensor<1x64xf32>) -> tensor<1x64xf32> {
  %q = arith.constant dense<18> : tensor<1x32x64xui8>
  %s = arith.constant dense<0.5> : tensor<1x2x64xf32>
  %y = graph.nibble_matmul %x, %q, %s {block = 32 : i64, columns = 64 : i64} : (tensor<1x64xf32>, tensor<1x32x64xui8>, tensor<1x2x64xf32>) -> tensor<1x64xf32>
  func.return %y : tensor<1x64xf32>
}

// What is not known cannot be unpacked.
// CHECK-LABEL: func.func @argument
// CHECK:         graph.nibble_matmul
func.func @argument(%x: tensor<100x256xf32>, %q: tensor<1x128x64xui8>) -> tensor<100x64xf32> {
  %s = arith.constant dense<0.5> : tensor<1x8x64xf32>
  %y = graph.nibble_matmul %x, %q, %s {block = 32 : i64, columns = 64 : i64} : (tensor<100x256xf32>, tensor<1x128x64xui8>, tensor<1x8x64xf32>) -> tensor<100x64xf32>
  func.return %y : tensor<100x64xf32>
}
