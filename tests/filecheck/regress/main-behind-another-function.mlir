// RUN: irkit-run %s --level=task | filecheck %s
// RUN: irkit-run %s --level=schedule | filecheck %s

// The task level once ran the first function of a module, whatever its name.
// CHECK:      output0: float32[2]
// CHECK-NEXT: [3. 7.]

func.func @other() -> tensor<2xf32> {
  %y = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  func.return %y : tensor<2xf32>
}

func.func @main() -> tensor<2xf32> {
  %y = arith.constant dense<[3.0, 7.0]> : tensor<2xf32>
  func.return %y : tensor<2xf32>
}
