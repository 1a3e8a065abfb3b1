// RUN: irkit-opt %s -p schedule-wavefront,pin-residents,plan-memory,select-accesses,verify-schedule | filecheck %s

// One part is inserted into an input, whose elements are copied, another into state, where they are already: each
// has an rOperator of its own, of which one may leave out what does not change.
// CHECK:       task.roperator @part(%{{.*}}: tensor<4xf32>, %{{.*}}: tensor<9xf32>)
// CHECK:       task.roperator @part_in_place(%{{.*}}: tensor<4xf32>, %{{.*}}: tensor<9xf32>)
// CHECK-LABEL: task.program
// CHECK:         task.append @part to {{.*}} reads({{.*}}) writes([[o:%.*]])
// CHECK:         task.append @part_in_place to {{.*}} reads({{%.*}}, [[s:%.*]]) writes([[s]])
task.vdevice @cpu2 {kind = "cpu", veus = 2 : i64, threads = 1 : i64, shared_bytes = 0 : i64, wait_ns = 100.0 : f64, rates = {byte = 0.03 : f64}}
task.roperator @part(%s : tensor<4xf32>, %d : tensor<9xf32>) -> tensor<9xf32> attributes {rkernel = "map.inserted", grid = array<i64: 1>, cost = 100.0 : f64, parameters = {}, in_place = array<i64: 1, 0>} {
  %w = tensor.insert_slice %s into %d[1] [4] [2] : tensor<4xf32> into tensor<9xf32>
  task.yield %w : tensor<9xf32>
}
func.func @main(%x: tensor<4xf32>, %a: tensor<9xf32>, %h: tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>) attributes {irkit.state = array<i64: 2, 1>} {
  %0 = task.launch @part(%x, %a) : (tensor<4xf32>, tensor<9xf32>) -> tensor<9xf32>
  %1 = task.launch @part(%x, %h) : (tensor<4xf32>, tensor<9xf32>) -> tensor<9xf32>
  func.return %0, %1 : tensor<9xf32>, tensor<9xf32>
}
