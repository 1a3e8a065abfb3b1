// RUN: irkit-opt %s -p form-roperators --check-semantics --split-input-file | filecheck %s

// What updates state is written behind all launches that read its old value, and may be written in place.
// CHECK:      task.roperator @map_0(%{{.*}}: tensor<8xf32>, %{{.*}}: tensor<8xf32>) -> tensor<8xf32> attributes {{{.*}}in_place = array<i64: 0, 0>}
// CHECK:      task.roperator @map_1(%{{.*}}: tensor<8xf32>) -> tensor<8xf32> attributes {sources = "linalg.generic"}
// CHECK-LABEL: func.func @main
// CHECK-NEXT:   [[y:%.*]] = task.launch @map_1(%w)
// CHECK-NEXT:   [[n:%.*]] = task.launch @map_0(%w, %g)
// CHECK-NEXT:   func.return [[n]], [[y]]
#i = affine_map<(i) -> (i)>
func.func @main(%w: tensor<8xf32>, %g: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) attributes {irkit.state = array<i64: 0, 0>} {
  %e = tensor.empty() : tensor<8xf32>
  %0 = linalg.generic {indexing_maps = [#i, #i, #i], iterator_types = ["parallel"]} ins(%w, %g : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.subf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %1 = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%w : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = math.exp %a : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}

// -----

// Two that change places: one is made aside, and copied in the end. What stays as it is has no launch.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:   [[a:%.*]] = task.launch @map_0(%b)
// CHECK-NEXT:   [[b:%.*]] = task.launch @map_0(%a)
// CHECK-NEXT:   [[c:%.*]] = task.launch @map_0([[a]])
// CHECK-NEXT:   func.return [[c]], [[b]], %k
func.func @main(%a: tensor<8xf32>, %b: tensor<8xf32>, %k: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) attributes {irkit.state = array<i64: 0, 0, 1, 1, 2, 2>} {
  return %b, %a, %k : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

// An element of the new value needs other elements of the old one.
// CHECK-NOT:   in_place
// CHECK-LABEL: func.func @main
// CHECK-NEXT:   [[n:%.*]] = task.launch @map_0(%w)
// CHECK-NEXT:   [[c:%.*]] = task.launch @map_1([[n]])
// CHECK-NEXT:   func.return [[c]]
func.func @main(%w: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {irkit.state = array<i64: 0, 0>} {
  %e = tensor.empty() : tensor<4x4xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

// A part of the state is made of the same part: its slice, though it names bytes, belongs to the launch, which
// updates the state in place.
// CHECK:       task.roperator @map_0([[w:%.*]]: tensor<4x4xf32>, %{{.*}}: tensor<3x4xf32>) -> tensor<4x4xf32> attributes {{{.*}}in_place = array<i64: 0, 0>}
// CHECK:         tensor.extract_slice [[w]][1, 0] [3, 4] [1, 1]
// CHECK:         tensor.insert_slice {{.*}} into [[w]][1, 0] [3, 4] [1, 1]
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    [[n:%.*]] = task.launch @map_0(%w, %g)
// CHECK-NEXT:    func.return [[n]]
#i = affine_map<(i, j) -> (i, j)>
func.func @main(%w: tensor<4x4xf32>, %g: tensor<3x4xf32>) -> tensor<4x4xf32> attributes {irkit.state = array<i64: 0, 0>} {
  %e = tensor.empty() : tensor<3x4xf32>
  %p = tensor.extract_slice %w[1, 0] [3, 4] [1, 1] : tensor<4x4xf32> to tensor<3x4xf32>
  %0 = linalg.generic {indexing_maps = [#i, #i, #i], iterator_types = ["parallel", "parallel"]} ins(%g, %p : tensor<3x4xf32>, tensor<3x4xf32>) outs(%e : tensor<3x4xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.subf %b, %a : f32
    linalg.yield %s : f32
  } -> tensor<3x4xf32>
  %1 = tensor.insert_slice %0 into %w[1, 0] [3, 4] [1, 1] : tensor<3x4xf32> into tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}

// -----

// Of another part of it, it cannot be: the new state is made elsewhere.
// CHECK-NOT:   in_place
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    [[n:%.*]] = task.launch @map_0(%w)
// CHECK-NEXT:    [[c:%.*]] = task.launch @map_1([[n]])
// CHECK-NEXT:    func.return [[c]]
#i = affine_map<(i, j) -> (i, j)>
func.func @main(%w: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {irkit.state = array<i64: 0, 0>} {
  %e = tensor.empty() : tensor<3x4xf32>
  %p = tensor.extract_slice %w[0, 0] [3, 4] [1, 1] : tensor<4x4xf32> to tensor<3x4xf32>
  %0 = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<3x4xf32>) outs(%e : tensor<3x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = math.exp %a : f32
    linalg.yield %s : f32
  } -> tensor<3x4xf32>
  %1 = tensor.insert_slice %0 into %w[1, 0] [3, 4] [1, 1] : tensor<3x4xf32> into tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}
