// What the host has to do cuts a program; what stands between is a function of buffers each.
// RUN: irkit-opt %s --split-input-file -p form-regions | filecheck %s
// RUN: irkit-opt %s --split-input-file -p form-regions --verify-roundtrip

// CHECK-LABEL: func.func @main_region0(%x: memref<8xf64>, %{{.*}}: memref<8xf64>)
// CHECK-NEXT: %[[T:.*]] = bufferization.to_tensor %x
// CHECK-NEXT: %[[Y:.*]] = graph.neg %[[T]]
// CHECK-NEXT: bufferization.materialize_in_destination %[[Y]] in writable %[[KEPT:.*]] :
// CHECK-NEXT: bufferization.materialize_in_destination %[[Y]] in writable %x
// CHECK: func.return

// The body of a loop that asks is a region; the condition is the host's.
// CHECK-LABEL: func.func @main_region1(%x: memref<8xf64>)
// CHECK: scf.for
// CHECK-LABEL: func.func @main_region2(
// CHECK: graph.add

// CHECK-LABEL: func.func @main(%x: memref<8xf64>, %go: memref<i1>)
// CHECK: %[[KEPT:.*]] = memref.alloc() : memref<8xf64>
// CHECK-NEXT: func.call @main_region0(%x, %[[KEPT]])
// CHECK: program.call @log(%[[V:.*]]) :
// CHECK-NEXT: scf.while
// CHECK: scf.condition
// CHECK: func.call @main_region1(%x)
// CHECK-NEXT: program.call @step
// CHECK: func.call @main_region2(
// CHECK: func.return
func.func @main(%x: memref<8xf64>, %go: memref<i1>) {
  %0 = bufferization.to_tensor %x : memref<8xf64> to tensor<8xf64>
  %1 = graph.neg %0 : (tensor<8xf64>) -> tensor<8xf64>
  bufferization.materialize_in_destination %1 in writable %x : (tensor<8xf64>, memref<8xf64>) -> ()
  %half = memref.reinterpret_cast %x to offset: [0], sizes: [4], strides: [2] : memref<8xf64> to memref<4xf64, strided<[2]>>
  program.call @log(%half) : memref<4xf64, strided<[2]>>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.while () : () -> () {
    %c = bufferization.to_tensor %go : memref<i1> to tensor<i1>
    %e = tensor.extract %c[] : tensor<i1>
    scf.condition(%e)
  } do {
    scf.for %i = %c0 to %c4 step %c1 {
      %a = memref.reinterpret_cast %x to offset: [%i], sizes: [4], strides: [1] : memref<8xf64> to memref<4xf64, strided<[1], offset: ?>>
      %t = bufferization.to_tensor %a : memref<4xf64, strided<[1], offset: ?>> to tensor<4xf64>
      %n = graph.neg %t : (tensor<4xf64>) -> tensor<4xf64>
      bufferization.materialize_in_destination %n in writable %a : (tensor<4xf64>, memref<4xf64, strided<[1], offset: ?>>) -> ()
    }
    program.call @step(%x, %go) {reads = array<i64: 0>, writes = array<i64: 1>} : memref<8xf64>, memref<i1>
    scf.yield
  }
  %2 = bufferization.to_tensor %x : memref<8xf64> to tensor<8xf64>
  %3 = graph.add %1, %2 : (tensor<8xf64>, tensor<8xf64>) -> tensor<8xf64>
  bufferization.materialize_in_destination %3 in writable %x : (tensor<8xf64>, memref<8xf64>) -> ()
  func.return
}

// -----

// In a loop of the host what hangs on its variable is the host's; what is beside it is a region.
// CHECK-LABEL: func.func @main_region0(
// CHECK: graph.add
// CHECK-NOT: scf.for
// CHECK-LABEL: func.func @main(%x: memref<4x8xf64>, %s: memref<8xf64>)
// CHECK: scf.for %[[I:.*]] =
// CHECK: %[[ROW:.*]] = memref.reinterpret_cast %x to offset: [%{{.*}}]
// CHECK: bufferization.to_tensor %[[ROW]]
// CHECK-NOT: graph
// CHECK: func.call @main_region0(
// CHECK-NEXT: program.call @log
func.func @main(%x: memref<4x8xf64>, %s: memref<8xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %at = affine.apply affine_map<(d0) -> (d0 * 8)>(%i)
    %row = memref.reinterpret_cast %x to offset: [%at], sizes: [8], strides: [1] : memref<4x8xf64> to memref<8xf64, strided<[1], offset: ?>>
    %0 = bufferization.to_tensor %row : memref<8xf64, strided<[1], offset: ?>> to tensor<8xf64>
    %1 = bufferization.to_tensor %s : memref<8xf64> to tensor<8xf64>
    %2 = graph.add %0, %1 : (tensor<8xf64>, tensor<8xf64>) -> tensor<8xf64>
    bufferization.materialize_in_destination %2 in writable %s : (tensor<8xf64>, memref<8xf64>) -> ()
    program.call @log(%s) : memref<8xf64>
  }
  func.return
}
