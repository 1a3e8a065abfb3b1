// RUN: irkit-opt %s -p 'share-products{device="h200"}' | filecheck %s
// RUN: irkit-opt %s -p 'share-products{device="h200"}' --remarks=missed 2>&1 | filecheck %s --check-prefix=MISSED
// RUN: irkit-opt %s -p 'share-products{device="cpu2"}' | filecheck %s --check-prefix=CPU

// What is transposed before is so once.
// CHECK-LABEL: func.func @filters
// CHECK: %[[D:.*]] = graph.reshape %d {shape = array<i64: 64, 3, 8, 100>}
// CHECK: %[[T:.*]] = graph.transpose %[[D]] {permutation = array<i64: 0, 2, 1, 3>} : (tensor<64x3x8x100xf32>) -> tensor<64x8x3x100xf32>
// CHECK: %[[X:.*]] = graph.reshape %x {shape = array<i64: 64, 3, 102>}
// CHECK: %[[P:.*]] = graph.expression %[[T]], %[[X]] {text = "W(part, m, t) +=! D(part, m, n, h) * X(part, n, h + t) where t in 0:3"} : {{.*}} -> tensor<64x8x3xf32>
// CHECK: %[[W:.*]] = graph.expression %[[P]] {text = "W(m, t) +=! W_parts(part, m, t)"}
// CHECK: func.return %[[W]]
// CPU-LABEL: func.func @filters
// CPU-COUNT-1: graph.expression
// CPU-NOT: graph.expression
// CPU-LABEL: func.func @images
func.func @filters(%d: tensor<192x8x100xf32>, %x: tensor<192x102xf32>) -> tensor<8x3xf32> {
  %t = graph.transpose %d {permutation = array<i64: 1, 0, 2>} : (tensor<192x8x100xf32>) -> tensor<8x192x100xf32>
  %w = graph.expression %t, %x {text = "W(m, t) +=! D(m, n, h) * X(n, h + t) where t in 0:3"}
    : (tensor<8x192x100xf32>, tensor<192x102xf32>) -> tensor<8x3xf32>
  func.return %w : tensor<8x3xf32>
}

// Images of so many terms are a part each, which a block computes at once: nothing moves.
// CHECK-LABEL: func.func @images
// CHECK-NEXT: graph.reshape %d {shape = array<i64: 192, 8, 1, 400>}
// CHECK-NEXT: graph.reshape %x {shape = array<i64: 192, 1, 402>}
// CHECK-NEXT: graph.expression
// CHECK-NEXT: graph.expression
func.func @images(%d: tensor<192x8x400xf32>, %x: tensor<192x402xf32>) -> tensor<8x3xf32> {
  %t = graph.transpose %d {permutation = array<i64: 1, 0, 2>} : (tensor<192x8x400xf32>) -> tensor<8x192x400xf32>
  %w = graph.expression %t, %x {text = "W(m, t) +=! D(m, n, h) * X(n, h + t) where t in 0:3"}
    : (tensor<8x192x400xf32>, tensor<192x402xf32>) -> tensor<8x3xf32>
  func.return %w : tensor<8x3xf32>
}

// One row of the batch a part: nothing moves.
// CHECK-LABEL: func.func @rows
// CHECK-NEXT: graph.reshape %d {shape = array<i64: 64, 8, 1, 400>}
// CHECK-NEXT: graph.reshape %x {shape = array<i64: 64, 1, 402>}
// CHECK-NEXT: graph.expression
// CHECK-NEXT: graph.expression
func.func @rows(%d: tensor<64x8x400xf32>, %x: tensor<64x402xf32>) -> tensor<8x3xf32> {
  %t = graph.transpose %d {permutation = array<i64: 1, 0, 2>} : (tensor<64x8x400xf32>) -> tensor<8x64x400xf32>
  %w = graph.expression %t, %x {text = "W(m, t) +=! D(m, n, h) * X(n, h + t) where t in 0:3"}
    : (tensor<8x64x400xf32>, tensor<64x402xf32>) -> tensor<8x3xf32>
  func.return %w : tensor<8x3xf32>
}

// CHECK-LABEL: func.func @left_alone
// CHECK-COUNT-4: graph.expression
// CHECK-NOT: graph.expression
// MISSED: its results, or too few terms, leave no vEU without work
// MISSED: no summed index is read by itself
// MISSED: it is no sum of products
// MISSED: it has a schedule
func.func @left_alone(%a: tensor<5x300xf32>, %b: tensor<300x7xf32>, %c: tensor<304xf32>)
    -> (tensor<5x7xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5x7xf32>) {
  %0 = graph.expression %a, %b {text = "C(m, j) +=! A(m, k) * B(k, j)"}
    : (tensor<5x300xf32>, tensor<300x7xf32>) -> tensor<5x7xf32>
  %1 = graph.expression %a, %c {text = "C(m) +=! A(m, h) * B(h + 4)"}
    : (tensor<5x300xf32>, tensor<304xf32>) -> tensor<5xf32>
  %2 = graph.expression %a {text = "C(m) max=! A(m, h)"} : (tensor<5x300xf32>) -> tensor<5xf32>
  %3 = graph.expression %a, %b {text = "C(m, j) +=! A(m, k) * B(k, j)", schedule = #loop.schedule<"for m, j, k of A, B">}
    : (tensor<5x300xf32>, tensor<300x7xf32>) -> tensor<5x7xf32>
  func.return %0, %1, %2, %3 : tensor<5x7xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5x7xf32>
}

// Large tiles, where parts of 512 terms give one to most vEUs: 14 of 128x128, by 8.
// CHECK-LABEL: func.func @large
// CHECK: graph.expression {{.*}} -> tensor<8x784x256xf32>
// CHECK: graph.expression {{.*}} -> tensor<784x256xf32>
func.func @large(%a: tensor<784x4096xf32>, %b: tensor<4096x256xf32>) -> tensor<784x256xf32> {
  %0 = graph.expression %a, %b {text = "C(m, j) +=! A(m, k) * B(k, j)"}
    : (tensor<784x4096xf32>, tensor<4096x256xf32>) -> tensor<784x256xf32>
  func.return %0 : tensor<784x256xf32>
}

// With fewer terms those of 32x64 leave none without work already.
// CHECK-LABEL: func.func @large_and_short
// CHECK-COUNT-1: graph.expression
// CHECK-NOT: graph.expression
func.func @large_and_short(%a: tensor<784x1000xf32>, %b: tensor<1000x256xf32>) -> tensor<784x256xf32> {
  %0 = graph.expression %a, %b {text = "C(m, j) +=! A(m, k) * B(k, j)"}
    : (tensor<784x1000xf32>, tensor<1000x256xf32>) -> tensor<784x256xf32>
  func.return %0 : tensor<784x256xf32>
}
