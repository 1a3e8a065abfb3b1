// Every graph op: custom and generic form, both ways.
// RUN: irkit-opt %s | irkit-opt - | filecheck %s
// RUN: irkit-opt %s --print-op-generic | irkit-opt - | filecheck %s
// RUN: irkit-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC
// RUN: irkit-opt %s --verify-roundtrip | filecheck %s

// CHECK-LABEL: func.func @acos(
// CHECK-NEXT:    %y = graph.acos %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
// GENERIC:       %y = "graph.acos"(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
func.func @acos(%x: tensor<?x8xf32>) {
  %y = graph.acos %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return
}

// CHECK-LABEL: func.func @acosh(
// CHECK-NEXT:    %y = graph.acosh %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
// GENERIC:       %y = "graph.acosh"(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
func.func @acosh(%x: tensor<?x8xf32>) {
  %y = graph.acosh %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return
}

// CHECK-LABEL: func.func @asin(
// CHECK-NEXT:    %y = graph.asin %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
// GENERIC:       %y = "graph.asin"(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
func.func @asin(%x: tensor<?x8xf32>) {
  %y = graph.asin %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return
}

// CHECK-LABEL: func.func @asinh(
// CHECK-NEXT:    %y = graph.asinh %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
// GENERIC:       %y = "graph.asinh"(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
func.func @asinh(%x: tensor<?x8xf32>) {
  %y = graph.asinh %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return
}

// CHECK-LABEL: func.func @atan(
// CHECK-NEXT:    %y = graph.atan %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
// GENERIC:       %y = "graph.atan"(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
func.func @atan(%x: tensor<?x8xf32>) {
  %y = graph.atan %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return
}

// CHECK-LABEL: func.func @atan2(
// CHECK-NEXT:    %y = graph.atan2 %x, %b : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
// GENERIC:       %y = "graph.atan2"(%x, %b) : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
func.func @atan2(%x: tensor<?x8xf32>, %b: tensor<8xf32>) {
  %y = graph.atan2 %x, %b : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  func.return
}

// CHECK-LABEL: func.func @atanh(
// CHECK-NEXT:    %y = graph.atanh %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
// GENERIC:       %y = "graph.atanh"(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
func.func @atanh(%x: tensor<?x8xf32>) {
  %y = graph.atanh %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return
}

// CHECK-LABEL: func.func @cbrt(
// CHECK-NEXT:    %y = graph.cbrt %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
// GENERIC:       %y = "graph.cbrt"(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
func.func @cbrt(%x: tensor<?x8xf32>) {
  %y = graph.cbrt %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return
}

// CHECK-LABEL: func.func @ceil(
// CHECK-NEXT:    %y = graph.ceil %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
// GENERIC:       %y = "graph.ceil"(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
func.func @ceil(%x: tensor<?x8xf32>) {
  %y = graph.ceil %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return
}

// CHECK-LABEL: func.func @copysign(
// CHECK-NEXT:    %y = graph.copysign %x, %b : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
// GENERIC:       %y = "graph.copysign"(%x, %b) : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
func.func @copysign(%x: tensor<?x8xf32>, %b: tensor<8xf32>) {
  %y = graph.copysign %x, %b : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  func.return
}

// CHECK-LABEL: func.func @cos(
// CHECK-NEXT:    %y = graph.cos %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
// GENERIC:       %y = "graph.cos"(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
func.func @cos(%x: tensor<?x8xf32>) {
  %y = graph.cos %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return
}

// CHECK-LABEL: func.func @cosh(
// CHECK-NEXT:    %y = graph.cosh %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
// GENERIC:       %y = "graph.cosh"(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
func.func @cosh(%x: tensor<?x8xf32>) {
  %y = graph.cosh %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return
}

// CHECK-LABEL: func.func @exp2(
// CHECK-NEXT:    %y = graph.exp2 %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
// GENERIC:       %y = "graph.exp2"(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
func.func @exp2(%x: tensor<?x8xf32>) {
  %y = graph.exp2 %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return
}

// CHECK-LABEL: func.func @expm1(
// CHECK-NEXT:    %y = graph.expm1 %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
// GENERIC:       %y = "graph.expm1"(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
func.func @expm1(%x: tensor<?x8xf32>) {
  %y = graph.expm1 %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return
}

// CHECK-LABEL: func.func @log10(
// CHECK-NEXT:    %y = graph.log10 %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
// GENERIC:       %y = "graph.log10"(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
func.func @log10(%x: tensor<?x8xf32>) {
  %y = graph.log10 %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return
}

// CHECK-LABEL: func.func @log1p(
// CHECK-NEXT:    %y = graph.log1p %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
// GENERIC:       %y = "graph.log1p"(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
func.func @log1p(%x: tensor<?x8xf32>) {
  %y = graph.log1p %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return
}

// CHECK-LABEL: func.func @log2(
// CHECK-NEXT:    %y = graph.log2 %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
// GENERIC:       %y = "graph.log2"(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
func.func @log2(%x: tensor<?x8xf32>) {
  %y = graph.log2 %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return
}

// CHECK-LABEL: func.func @round(
// CHECK-NEXT:    %y = graph.round %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
// GENERIC:       %y = "graph.round"(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
func.func @round(%x: tensor<?x8xf32>) {
  %y = graph.round %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return
}

// CHECK-LABEL: func.func @sin(
// CHECK-NEXT:    %y = graph.sin %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
// GENERIC:       %y = "graph.sin"(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
func.func @sin(%x: tensor<?x8xf32>) {
  %y = graph.sin %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return
}

// CHECK-LABEL: func.func @sinh(
// CHECK-NEXT:    %y = graph.sinh %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
// GENERIC:       %y = "graph.sinh"(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
func.func @sinh(%x: tensor<?x8xf32>) {
  %y = graph.sinh %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return
}

// CHECK-LABEL: func.func @tan(
// CHECK-NEXT:    %y = graph.tan %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
// GENERIC:       %y = "graph.tan"(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
func.func @tan(%x: tensor<?x8xf32>) {
  %y = graph.tan %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return
}
