// What the host of a program does, as tasks: one stream for each engine of the device, and the waits.
// RUN: irkit-opt %s -p lower-to-host,'assign-streams{policy=by-kind}',verify-streams | filecheck %s

// CHECK: host.program @main attributes {verified = "sha256:{{.*}}"} {
// CHECK: %x = host.buffer {space = "host", nbytes = 128 : i64}
// CHECK: %a = host.buffer {space = "device", nbytes = 64 : i64}
// CHECK: %b = host.buffer {space = "device", nbytes = 64 : i64}
// The first chunk.
// CHECK: host.region %x reads 64 bytes at 0
// CHECK: %[[IN:.*]] = host.task "to device: x" to_device on 1 uses(
// CHECK: host.region %a reads 64 bytes at 0
// CHECK: host.region %b writes 64 bytes at 0
// CHECK: %[[DO:.*]] = host.task "neg" kernel on 2 wait(%[[IN]]) uses(
// CHECK: %[[OUT:.*]] = host.task "to host: x" to_host on 3 wait(%[[DO]]) uses(
// The second one: its copy waits until the first has been read, its function until the first has been copied.
// CHECK: host.region %x reads 64 bytes at 64
// CHECK: %[[IN1:.*]] = host.task "to device: x" to_device on 1 wait(%[[DO]]) uses(
// CHECK: host.task "neg" kernel on 2 wait(%[[OUT]], %[[IN1]]) uses(
// CHECK: host.task "to host: x" to_host on 3 wait(
func.func @neg(%a: memref<8xf64, 1 : i64>, %b: memref<8xf64, 1 : i64>) {
  %t = bufferization.to_tensor %a : memref<8xf64, 1 : i64> to tensor<8xf64>
  %y = graph.neg %t : (tensor<8xf64>) -> tensor<8xf64>
  bufferization.materialize_in_destination %y in writable %b : (tensor<8xf64>, memref<8xf64, 1 : i64>) -> ()
  func.return
}
func.func @main(%x: memref<16xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %a = memref.alloc() : memref<8xf64, 1 : i64>
  %b = memref.alloc() : memref<8xf64, 1 : i64>
  scf.for %i = %c0 to %c2 step %c1 {
    %0 = affine.apply affine_map<(d0) -> (d0 * 8)>(%i)
    %v = memref.reinterpret_cast %x to offset: [%0], sizes: [8], strides: [1] : memref<16xf64> to memref<8xf64, strided<[1], offset: ?>>
    "memref.copy"(%v, %a) : (memref<8xf64, strided<[1], offset: ?>>, memref<8xf64, 1 : i64>) -> ()
    func.call @neg(%a, %b) : (memref<8xf64, 1 : i64>, memref<8xf64, 1 : i64>) -> ()
    "memref.copy"(%b, %v) : (memref<8xf64, 1 : i64>, memref<8xf64, strided<[1], offset: ?>>) -> ()
  }
  func.return
}
