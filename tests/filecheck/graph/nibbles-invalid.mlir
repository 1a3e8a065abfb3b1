// What products with matrices of 4-bit integers refuse, and in which words.
// RUN: irkit-opt %s --split-input-file --verify-diagnostics

func.func @vector(%x: tensor<80xf32>, %q: tensor<2x40x64xui8>, %s: tensor<2x3x64xf32>) {
  // expected-error@+1 {{'graph.nibble_matmul' expects x of rank 2 or more, its rows of known length, got tensor<80xf32>}}
  %y = graph.nibble_matmul %x, %q, %s {block = 32 : i64, columns = 100 : i64} : (tensor<80xf32>, tensor<2x40x64xui8>, tensor<2x3x64xf32>) -> tensor<100xf32>
  func.return
}

// -----

func.func @odd(%x: tensor<3x81xf32>, %q: tensor<2x40x64xui8>, %s: tensor<2x3x64xf32>) {
  // expected-error@+1 {{'graph.nibble_matmul' expects rows of x of an even number of elements, got 81}}
  %y = graph.nibble_matmul %x, %q, %s {block = 32 : i64, columns = 100 : i64} : (tensor<3x81xf32>, tensor<2x40x64xui8>, tensor<2x3x64xf32>) -> tensor<3x100xf32>
  func.return
}

// -----

func.func @odd_block(%x: tensor<3x80xf32>, %q: tensor<2x40x64xui8>, %s: tensor<2x3x64xf32>) {
  // expected-error@+1 {{'graph.nibble_matmul' expects a block of an even number of terms, got block = 15}}
  %y = graph.nibble_matmul %x, %q, %s {block = 15 : i64, columns = 100 : i64} : (tensor<3x80xf32>, tensor<2x40x64xui8>, tensor<2x3x64xf32>) -> tensor<3x100xf32>
  func.return
}

// -----

func.func @no_columns(%x: tensor<3x80xf32>, %q: tensor<2x40x64xui8>, %s: tensor<2x3x64xf32>) {
  // expected-error@+1 {{'graph.nibble_matmul' expects 1 column or more, got columns = 0}}
  %y = graph.nibble_matmul %x, %q, %s {block = 32 : i64, columns = 0 : i64} : (tensor<3x80xf32>, tensor<2x40x64xui8>, tensor<2x3x64xf32>) -> tensor<3x100xf32>
  func.return
}

// -----

func.func @panels(%x: tensor<3x80xf32>, %q: tensor<2x40x64xui8>, %s: tensor<2x3x64xf32>) {
  // expected-error@+1 {{'graph.nibble_matmul' expects packed of 3x40x64, got tensor<2x40x64xui8>}}
  %y = graph.nibble_matmul %x, %q, %s {block = 32 : i64, columns = 129 : i64} : (tensor<3x80xf32>, tensor<2x40x64xui8>, tensor<2x3x64xf32>) -> tensor<3x100xf32>
  func.return
}

// -----

func.func @pairs(%x: tensor<3x80xf32>, %q: tensor<2x41x64xui8>, %s: tensor<2x3x64xf32>) {
  // expected-error@+1 {{'graph.nibble_matmul' expects packed of 2x40x64, got tensor<2x41x64xui8>}}
  %y = graph.nibble_matmul %x, %q, %s {block = 32 : i64, columns = 100 : i64} : (tensor<3x80xf32>, tensor<2x41x64xui8>, tensor<2x3x64xf32>) -> tensor<3x100xf32>
  func.return
}

// -----

func.func @blocks(%x: tensor<3x80xf32>, %q: tensor<2x40x64xui8>, %s: tensor<2x2x64xf32>) {
  // expected-error@+1 {{'graph.nibble_matmul' expects scales and zeros of 2x3x64, got tensor<2x2x64xf32>}}
  %y = graph.nibble_matmul %x, %q, %s {block = 32 : i64, columns = 100 : i64} : (tensor<3x80xf32>, tensor<2x40x64xui8>, tensor<2x2x64xf32>) -> tensor<3x100xf32>
  func.return
}

// -----

func.func @integers(%x: tensor<3x80xf32>, %q: tensor<2x40x64xi8>, %s: tensor<2x3x64xf32>) {
  // expected-error@+1 {{'graph.nibble_matmul' expects elements of ui8, got tensor<2x40x64xi8>}}
  %y = graph.nibble_matmul %x, %q, %s {block = 32 : i64, columns = 100 : i64} : (tensor<3x80xf32>, tensor<2x40x64xi8>, tensor<2x3x64xf32>) -> tensor<3x100xf32>
  func.return
}
