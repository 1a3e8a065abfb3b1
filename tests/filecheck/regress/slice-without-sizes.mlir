// RUN: irkit-opt %s --verify-diagnostics --split-input-file

func.func @main(%s: tensor<4xf32>, %d: tensor<9xf32>) -> tensor<9xf32> {
  // expected-error@+1 {{'tensor.insert_slice' expected 1 size values, got 0}}
  %w = tensor.insert_slice %s into %d[1] [ ] [2] : tensor<4xf32> into tensor<9xf32>
  func.return %w : tensor<9xf32>
}

// -----

func.func @main(%d: tensor<9x4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{'tensor.extract_slice' expected 2 stride values, got 1}}
  %w = tensor.extract_slice %d[1, 0] [1, 4] [1] : tensor<9x4xf32> to tensor<4xf32>
  func.return %w : tensor<4xf32>
}
