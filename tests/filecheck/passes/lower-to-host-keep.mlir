// Arguments stay as they are, what a function of the device changes goes to a second array, and an array of the
// device lies where one lay that is not used any more.
// RUN: irkit-opt %s -p 'lower-to-host{keep=true share=true}',assign-streams,verify-streams | filecheck %s
// RUN: irkit-opt %s -p lower-to-host | filecheck %s --check-prefix=PLAIN

// CHECK: %x = host.buffer {space = "host", nbytes = 64 : i64}
// CHECK-NEXT: %a = host.buffer {space = "device", nbytes = 64 : i64}
// CHECK-NEXT: %a_turn = host.buffer {space = "device", nbytes = 64 : i64}
// CHECK-NEXT: %x_new = host.buffer {space = "host", nbytes = 64 : i64}
// CHECK: host.region %x reads 64 bytes at 0
// CHECK: host.region %a writes 64 bytes at 0
// CHECK: host.task "to device: x"
// CHECK: host.region %a reads 64 bytes at 0
// CHECK: host.region %a_turn writes 64 bytes at 0
// CHECK: host.task "neg" kernel
// The last one writes where the first one read: nobody needs that now.
// CHECK: host.region %a_turn reads 64 bytes at 0
// CHECK: host.region %a writes 64 bytes at 0
// CHECK: host.task "double" kernel
// CHECK: host.region %a reads 64 bytes at 0
// CHECK: host.region %x_new writes 64 bytes at 0
// CHECK: host.task "to host: x_new" to_host

// PLAIN: %b = host.buffer {space = "device"
// PLAIN: host.region %x writes 64 bytes at 0
func.func @neg(%a: memref<8xf64, 1 : i64>) {
  %t = bufferization.to_tensor %a : memref<8xf64, 1 : i64> to tensor<8xf64>
  %y = graph.neg %t : (tensor<8xf64>) -> tensor<8xf64>
  bufferization.materialize_in_destination %y in writable %a : (tensor<8xf64>, memref<8xf64, 1 : i64>) -> ()
  func.return
}
func.func @double(%a: memref<8xf64, 1 : i64>, %b: memref<8xf64, 1 : i64>) {
  %t = bufferization.to_tensor %a : memref<8xf64, 1 : i64> to tensor<8xf64>
  %y = graph.add %t, %t : (tensor<8xf64>, tensor<8xf64>) -> tensor<8xf64>
  bufferization.materialize_in_destination %y in writable %b : (tensor<8xf64>, memref<8xf64, 1 : i64>) -> ()
  func.return
}
func.func @main(%x: memref<8xf64>) {
  %a = memref.alloc() : memref<8xf64, 1 : i64>
  %b = memref.alloc() : memref<8xf64, 1 : i64>
  "memref.copy"(%x, %a) : (memref<8xf64>, memref<8xf64, 1 : i64>) -> ()
  func.call @neg(%a) : (memref<8xf64, 1 : i64>) -> ()
  func.call @double(%a, %b) : (memref<8xf64, 1 : i64>, memref<8xf64, 1 : i64>) -> ()
  "memref.copy"(%b, %x) : (memref<8xf64, 1 : i64>, memref<8xf64>) -> ()
  func.return
}
