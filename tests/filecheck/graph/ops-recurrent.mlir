// Recurrent layers and cells: custom and generic form, both ways.
// RUN: irkit-opt %s | irkit-opt - | filecheck %s
// RUN: irkit-opt %s --print-op-generic | irkit-opt - | filecheck %s
// RUN: irkit-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK-LABEL: func.func @gru(
// CHECK-NEXT:    %y, %hn = graph.gru %x, %h, %w, %r, %b {linear_before_reset = false, reverse = true} : (tensor<5x1x8xf32>, tensor<1x4xf32>, tensor<12x8xf32>, tensor<12x4xf32>, tensor<16xf32>) -> (tensor<5x1x4xf32>, tensor<1x4xf32>)
// GENERIC:       %y, %hn = "graph.gru"(%x, %h, %w, %r, %b) <{linear_before_reset = false, reverse = true}> : (tensor<5x1x8xf32>, tensor<1x4xf32>, tensor<12x8xf32>, tensor<12x4xf32>, tensor<16xf32>) -> (tensor<5x1x4xf32>, tensor<1x4xf32>)
func.func @gru(%x: tensor<5x1x8xf32>, %h: tensor<1x4xf32>, %w: tensor<12x8xf32>, %r: tensor<12x4xf32>, %b: tensor<16xf32>) {
  %y, %hn = graph.gru %x, %h, %w, %r, %b {linear_before_reset = false, reverse = true} : (tensor<5x1x8xf32>, tensor<1x4xf32>, tensor<12x8xf32>, tensor<12x4xf32>, tensor<16xf32>) -> (tensor<5x1x4xf32>, tensor<1x4xf32>)
  func.return
}

// CHECK-LABEL: func.func @gru_cell(
// CHECK-NEXT:    %h1 = graph.gru_cell %x, %h, %w, %r, %b {linear_before_reset = true} : (tensor<?x8xf32>, tensor<?x4xf32>, tensor<12x8xf32>, tensor<12x4xf32>, tensor<16xf32>) -> tensor<?x4xf32>
// GENERIC:       %h1 = "graph.gru_cell"(%x, %h, %w, %r, %b) <{linear_before_reset = true}> : (tensor<?x8xf32>, tensor<?x4xf32>, tensor<12x8xf32>, tensor<12x4xf32>, tensor<16xf32>) -> tensor<?x4xf32>
func.func @gru_cell(%x: tensor<?x8xf32>, %h: tensor<?x4xf32>, %w: tensor<12x8xf32>, %r: tensor<12x4xf32>, %b: tensor<16xf32>) {
  %h1 = graph.gru_cell %x, %h, %w, %r, %b {linear_before_reset = true} : (tensor<?x8xf32>, tensor<?x4xf32>, tensor<12x8xf32>, tensor<12x4xf32>, tensor<16xf32>) -> tensor<?x4xf32>
  func.return
}

// CHECK-LABEL: func.func @lstm_peepholes(
// CHECK-NEXT:    %y, %hn, %cn = graph.lstm %x, %h, %h, %w, %r, %b, %p {reverse = true} : (tensor<5x1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<16x8xf32>, tensor<16x4xf32>, tensor<16xf32>, tensor<12xf32>) -> (tensor<5x1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>)
// GENERIC:       %y, %hn, %cn = "graph.lstm"(%x, %h, %h, %w, %r, %b, %p) <{reverse = true}> : (tensor<5x1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<16x8xf32>, tensor<16x4xf32>, tensor<16xf32>, tensor<12xf32>) -> (tensor<5x1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>)
func.func @lstm_peepholes(%x: tensor<5x1x8xf32>, %h: tensor<1x4xf32>, %w: tensor<16x8xf32>, %r: tensor<16x4xf32>, %b: tensor<16xf32>, %p: tensor<12xf32>) {
  %y, %hn, %cn = graph.lstm %x, %h, %h, %w, %r, %b, %p {reverse = true} : (tensor<5x1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<16x8xf32>, tensor<16x4xf32>, tensor<16xf32>, tensor<12xf32>) -> (tensor<5x1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>)
  func.return
}

// CHECK-LABEL: func.func @lstm_cell_functions(
// CHECK-NEXT:    %h1, %c1 = graph.lstm_cell %x, %h, %h, %w, %r, %b {activations = ["sigmoid", "relu", "softsign"]} : (tensor<1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<16x8xf32>, tensor<16x4xf32>, tensor<16xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>)
// GENERIC:       %h1, %c1 = "graph.lstm_cell"(%x, %h, %h, %w, %r, %b) <{activations = ["sigmoid", "relu", "softsign"]}> : (tensor<1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<16x8xf32>, tensor<16x4xf32>, tensor<16xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>)
func.func @lstm_cell_functions(%x: tensor<1x8xf32>, %h: tensor<1x4xf32>, %w: tensor<16x8xf32>, %r: tensor<16x4xf32>, %b: tensor<16xf32>) {
  %h1, %c1 = graph.lstm_cell %x, %h, %h, %w, %r, %b {activations = ["sigmoid", "relu", "softsign"]} : (tensor<1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<16x8xf32>, tensor<16x4xf32>, tensor<16xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>)
  func.return
}

// CHECK-LABEL: func.func @rnn(
// CHECK-NEXT:    %y, %hn = graph.rnn %x, %h, %w, %r, %b : (tensor<5x1x8xf32>, tensor<1x4xf32>, tensor<4x8xf32>, tensor<4x4xf32>, tensor<4xf32>) -> (tensor<5x1x4xf32>, tensor<1x4xf32>)
// GENERIC:       %y, %hn = "graph.rnn"(%x, %h, %w, %r, %b) : (tensor<5x1x8xf32>, tensor<1x4xf32>, tensor<4x8xf32>, tensor<4x4xf32>, tensor<4xf32>) -> (tensor<5x1x4xf32>, tensor<1x4xf32>)
func.func @rnn(%x: tensor<5x1x8xf32>, %h: tensor<1x4xf32>, %w: tensor<4x8xf32>, %r: tensor<4x4xf32>, %b: tensor<4xf32>) {
  %y, %hn = graph.rnn %x, %h, %w, %r, %b : (tensor<5x1x8xf32>, tensor<1x4xf32>, tensor<4x8xf32>, tensor<4x4xf32>, tensor<4xf32>) -> (tensor<5x1x4xf32>, tensor<1x4xf32>)
  func.return
}

// CHECK-LABEL: func.func @rnn_cell(
// CHECK-NEXT:    %h1 = graph.rnn_cell %x, %h, %w, %r, %b {activations = ["relu"]} : (tensor<1x8xf32>, tensor<1x4xf32>, tensor<4x8xf32>, tensor<4x4xf32>, tensor<4xf32>) -> tensor<1x4xf32>
// GENERIC:       %h1 = "graph.rnn_cell"(%x, %h, %w, %r, %b) <{activations = ["relu"]}> : (tensor<1x8xf32>, tensor<1x4xf32>, tensor<4x8xf32>, tensor<4x4xf32>, tensor<4xf32>) -> tensor<1x4xf32>
func.func @rnn_cell(%x: tensor<1x8xf32>, %h: tensor<1x4xf32>, %w: tensor<4x8xf32>, %r: tensor<4x4xf32>, %b: tensor<4xf32>) {
  %h1 = graph.rnn_cell %x, %h, %w, %r, %b {activations = ["relu"]} : (tensor<1x8xf32>, tensor<1x4xf32>, tensor<4x8xf32>, tensor<4x4xf32>, tensor<4xf32>) -> tensor<1x4xf32>
  func.return
}
