// RUN: irkit-opt %s -p insert-transfers | filecheck %s

// A call of the host that is on the device is one of arrays there, and of views of them.

// CHECK-LABEL: func.func @main
// CHECK:         %[[X:.*]] = memref.alloc() : memref<8xf64, 1 : i64>
// CHECK-NEXT:    "memref.copy"(%x, %[[X]])
// CHECK-NEXT:    program.call @smooth(%[[X]])
// CHECK-NEXT:    %[[V:.*]] = memref.reinterpret_cast %[[X]] to offset: [4]
// CHECK-NEXT:    program.call @smooth(%[[V]])
// CHECK-NEXT:    "memref.copy"(%[[X]], %x)
// CHECK-NEXT:    program.call @other(%x)
func.func @main(%x: memref<8xf64>) {
  program.call @smooth(%x) {irkit.device = "cuda", reads = array<i64: 0>, writes = array<i64: 0>} : memref<8xf64>
  %0 = memref.reinterpret_cast %x to offset: [4], sizes: [4], strides: [1] : memref<8xf64> to memref<4xf64, strided<[1], offset: 4>>
  program.call @smooth(%0) {irkit.device = "cuda", reads = array<i64: 0>, writes = array<i64: 0>} : memref<4xf64, strided<[1], offset: 4>>
  program.call @other(%x) {reads = array<i64: 0>, writes = array<i64>} : memref<8xf64>
  func.return
}
