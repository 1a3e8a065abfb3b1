// RUN: irkit-opt %s -p cut-sums | filecheck %s
// RUN: irkit-opt %s -p cut-sums --remarks=missed 2>&1 | filecheck %s --check-prefix=MISSED
// RUN: irkit-opt %s -p 'cut-sums{device="cpu2"}' | filecheck %s --check-prefix=RULE
// RUN: irkit-opt %s -p 'cut-sums{device="h200"}' | filecheck %s --check-prefix=GPU

// Each vEU sums half of the terms, by the steps that are said; then both halves are summed.
// CHECK-LABEL: @product
// CHECK-NEXT:    %[[A:.*]] = graph.reshape %a {shape = array<i64: 4, 2, 4>}
// CHECK-NEXT:    %[[B:.*]] = graph.reshape %b {shape = array<i64: 2, 4, 6>}
// CHECK-NEXT:    %[[P:.*]] = graph.expression %[[A]], %[[B]]
// CHECK-SAME:      text = "C(k_part, m, n) +=! A(m, k_part, k) * B(k_part, k, n)"
// CHECK-SAME:      "for k_part, m, n, k of A, B; bind k_part to veu in 2; split m by 2 as mo, mi; reorder mo, k, mi, n; unroll mi; unroll n; cache B">
// CHECK-SAME:      -> tensor<2x4x6xf32>
// CHECK-NEXT:    %[[C:.*]] = graph.expression %[[P]] {text = "C(m, n) +=! C_parts(k_part, m, n)"}
// CHECK-NEXT:    func.return %[[C]]
func.func @product(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>) -> tensor<4x6xf32> {
  %c = graph.expression %a, %b {text = "C(m, n) +=! A(m, k) * B(k, n)", schedule = #loop.schedule<"for m, n, k of A, B; bind k to veu in 2; split m by 2; reorder mo, k, mi, n; unroll mi; unroll n; cache B">} : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  func.return %c : tensor<4x6xf32>
}

// Two indices at once, one tensor by both; what it starts from is nothing for a largest too.
// CHECK-LABEL: @both
// CHECK-NEXT:    %[[X:.*]] = graph.reshape %x {shape = array<i64: 5, 2, 3, 4, 2>}
// CHECK-NEXT:    %[[P:.*]] = graph.expression %[[X]]
// CHECK-SAME:      text = "M(k_part, j_part, i) max=! X(i, j_part, j, k_part, k)"
// CHECK-NEXT:    graph.expression %[[P]] {text = "M(i) max=! M_parts(k_part, j_part, i)"}
func.func @both(%x: tensor<5x6x8xi32>) -> tensor<5xi32> {
  %y = graph.expression %x {text = "M(i) max=! X(i, j, k)", schedule = #loop.schedule<"for i, j, k of X; bind k to veu in 4; bind j to veu in 2">} : (tensor<5x6x8xi32>) -> tensor<5xi32>
  func.return %y : tensor<5xi32>
}

// The rule cuts where results alone are too few for the vEUs of a device.
// CHECK-LABEL: @tall
// RULE-LABEL:  @tall
// RULE:          graph.expression
// RULE-SAME:       "for k_part, m, n, k of A, B; rule">
// RULE-SAME:       -> tensor<2x8x8xf32>
// GPU-LABEL:   @tall
// GPU:             -> tensor<128x8x8xf32>
func.func @tall(%a: tensor<65536x8xf32>, %b: tensor<65536x8xf32>) -> tensor<8x8xf32> {
  %c = graph.expression %a, %b {text = "C(m, n) +=! A(k, m) * B(k, n)", schedule = #loop.schedule<"for m, n, k of A, B; rule">} : (tensor<65536x8xf32>, tensor<65536x8xf32>) -> tensor<8x8xf32>
  func.return %c : tensor<8x8xf32>
}

// CHECK-LABEL: @enough
// MISSED:      its schedule shares no sum out
// RULE-LABEL:  @enough
// RULE-NOT:      graph.reshape
func.func @enough(%a: tensor<64x8192xf32>, %b: tensor<8192x64xf32>) -> tensor<64x64xf32> {
  %c = graph.expression %a, %b {text = "C(m, n) +=! A(m, k) * B(k, n)", schedule = #loop.schedule<"for m, n, k of A, B; rule">} : (tensor<64x8192xf32>, tensor<8192x64xf32>) -> tensor<64x64xf32>
  func.return %c : tensor<64x64xf32>
}
