// Arrays, views and effects, in upstream's ops; calls of the host in our own.
// RUN: irkit-opt %s | irkit-opt | filecheck %s
// RUN: irkit-opt %s --verify-roundtrip | filecheck %s
// CHECK-LABEL: @main

func.func @main(%x: memref<8x4xf64>, %n: memref<i1>) -> memref<4x8xf64, strided<[1, 4]>> {
  // CHECK: memref.alloc() : memref<4xui8>
  %a = memref.alloc() : memref<4xui8>
  // CHECK: memref.reinterpret_cast %x to offset: [28], sizes: [8, 4], strides: [-4, 1] : memref<8x4xf64> to memref<8x4xf64, strided<[-4, 1], offset: 28>>
  %up = memref.reinterpret_cast %x to offset: [28], sizes: [8, 4], strides: [-4, 1] : memref<8x4xf64> to memref<8x4xf64, strided<[-4, 1], offset: 28>>
  // CHECK: strides: [0, 1]
  %rows = memref.reinterpret_cast %x to offset: [0], sizes: [8, 4], strides: [0, 1] : memref<8x4xf64> to memref<8x4xf64, strided<[0, 1]>>
  // CHECK: bufferization.to_tensor %up : memref<8x4xf64, strided<[-4, 1], offset: 28>> to tensor<8x4xf64>
  %u = bufferization.to_tensor %up : memref<8x4xf64, strided<[-4, 1], offset: 28>> to tensor<8x4xf64>
  %r = bufferization.to_tensor %rows : memref<8x4xf64, strided<[0, 1]>> to tensor<8x4xf64>
  %s = graph.add %u, %r : (tensor<8x4xf64>, tensor<8x4xf64>) -> tensor<8x4xf64>
  // CHECK: bufferization.materialize_in_destination %s in writable %x : (tensor<8x4xf64>, memref<8x4xf64>) -> ()
  bufferization.materialize_in_destination %s in writable %x : (tensor<8x4xf64>, memref<8x4xf64>) -> ()
  %0 = arith.constant 0 : index
  %8 = arith.constant 8 : index
  %2 = arith.constant 2 : index
  // CHECK: scf.for %i
  scf.for %i = %0 to %8 step %2 {
    // CHECK: affine.apply
    %at = affine.apply affine_map<(d0) -> (d0 * 4)> (%i)
    %row = memref.reinterpret_cast %x to offset: [%at], sizes: [4], strides: [1] : memref<8x4xf64> to memref<4xf64, strided<[1], offset: ?>>
    %t = bufferization.to_tensor %row : memref<4xf64, strided<[1], offset: ?>> to tensor<4xf64>
    %k = arith.index_cast %i : index to i64
    // CHECK: tensor.from_elements
    %kt = tensor.from_elements %k : tensor<i64>
    %m = graph.neg %t : (tensor<4xf64>) -> tensor<4xf64>
    bufferization.materialize_in_destination %m in writable %row : (tensor<4xf64>, memref<4xf64, strided<[1], offset: ?>>) -> ()
  }
  // CHECK: scf.while
  scf.while () : () -> () {
    %c = bufferization.to_tensor %n : memref<i1> to tensor<i1>
    // CHECK: tensor.extract
    %e = tensor.extract %c[] : tensor<i1>
    scf.condition(%e)
  } do {
    // CHECK: program.call @step(%x, %n) {reads = array<i64: 0>, writes = array<i64: 0, 1>} : memref<8x4xf64>, memref<i1>
    program.call @step(%x, %n) {reads = array<i64: 0>, writes = array<i64: 0, 1>} : memref<8x4xf64>, memref<i1>
    scf.yield
  }
  // CHECK: program.call @log(%a) {reads = array<i64>} : memref<4xui8>
  program.call @log(%a) {reads = array<i64>} : memref<4xui8>
  %v = memref.reinterpret_cast %x to offset: [0], sizes: [4, 8], strides: [1, 4] : memref<8x4xf64> to memref<4x8xf64, strided<[1, 4]>>
  func.return %v : memref<4x8xf64, strided<[1, 4]>>
}
