// Windows that overlap, at a place that moves, are neither a box nor picked by constant indices.
// RUN: not irkit-opt %s -p functionalise 2>&1 | filecheck %s

// CHECK: error: pass 'functionalise' failed: a view of memref<6x6xf64> with sizes [3, 2] and strides [5, 1] whose place moves with a loop, and that is no box
func.func @main(%x: memref<6x6xf64>) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %3 = arith.constant 3 : index
  scf.for %i = %0 to %3 step %1 {
    %d = memref.reinterpret_cast %x to offset: [%i], sizes: [3, 2], strides: [5, 1] : memref<6x6xf64> to memref<3x2xf64, strided<[5, 1], offset: ?>>
    %t = bufferization.to_tensor %d : memref<3x2xf64, strided<[5, 1], offset: ?>> to tensor<3x2xf64>
    bufferization.materialize_in_destination %t in writable %d : (tensor<3x2xf64>, memref<3x2xf64, strided<[5, 1], offset: ?>>) -> ()
  }
  func.return
}
