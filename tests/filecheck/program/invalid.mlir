// What a program of arrays is refused for, and in which words.
// RUN: irkit-opt %s --split-input-file --verify-diagnostics

func.func @main(%x: memref<8xf64>) {
  // expected-error@+1 {{'memref.reinterpret_cast' reaches elements 1 to 8 of a buffer of 8}}
  %v = memref.reinterpret_cast %x to offset: [1], sizes: [8], strides: [1] : memref<8xf64> to memref<8xf64, strided<[1], offset: 1>>
  func.return
}

// -----

func.func @main(%x: memref<8xf64>) {
  // expected-error@+1 {{'memref.reinterpret_cast' reaches elements -1 to 0 of a buffer of 8}}
  %v = memref.reinterpret_cast %x to offset: [0], sizes: [2], strides: [-1] : memref<8xf64> to memref<2xf64, strided<[-1]>>
  func.return
}

// -----

func.func @main(%x: memref<8xf64>) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %4 = arith.constant 4 : index
  scf.for %i = %0 to %4 step %1 {
    %at = affine.apply affine_map<(d0) -> (d0 * 3)> (%i)
    // expected-error@+1 {{'memref.reinterpret_cast' reaches elements 0 to 9 of a buffer of 8}}
    %v = memref.reinterpret_cast %x to offset: [%at], sizes: [1], strides: [1] : memref<8xf64> to memref<1xf64, strided<[1], offset: ?>>
  }
  func.return
}

// -----

func.func @main(%x: memref<8xf64>) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %4 = arith.constant 4 : index
  scf.for %i = %0 to %4 step %1 {
    // expected-error@+1 {{'affine.apply' has an offset that is not affine in induction variables}}
    %at = affine.apply affine_map<(d0) -> (d0 floordiv 2)> (%i)
  }
  func.return
}

// -----

func.func @main(%x: memref<8xf64>) {
  %0 = arith.constant 0 : index
  %4 = arith.constant 4 : index
  // expected-error@+1 {{'scf.for' expected a step of 1 or more, got 0}}
  scf.for %i = %0 to %4 step %0 {
  }
  func.return
}

// -----

func.func @main(%x: memref<8xf64>) {
  %v = memref.reinterpret_cast %x to offset: [0], sizes: [4], strides: [2] : memref<8xf64> to memref<4xf64, strided<[2]>>
  // expected-error@+1 {{'memref.reinterpret_cast' is a view of a view: views are of buffers}}
  %w = memref.reinterpret_cast %v to offset: [0], sizes: [2], strides: [1] : memref<4xf64, strided<[2]>> to memref<2xf64, strided<[1]>>
  func.return
}

// -----

func.func @main(%x: memref<8xf64>) {
  // expected-error@+1 {{'memref.reinterpret_cast' expected a result of type memref<4xf64, strided<[2]>>, got memref<4xf64, strided<[1]>>}}
  %v = memref.reinterpret_cast %x to offset: [0], sizes: [4], strides: [2] : memref<8xf64> to memref<4xf64, strided<[1]>>
  func.return
}

// -----

// expected-error@+1 {{'func.func' has argument 0, which is memref<8xf64, strided<[2]>>: a buffer has no layout of its own}}
func.func @main(%x: memref<8xf64, strided<[2]>>) {
  func.return
}

// -----

// expected-error@+1 {{'func.func' has argument 0, which is memref<?xf64>: shapes are numbers}}
func.func @main(%x: memref<?xf64>) {
  func.return
}

// -----

// expected-error@+1 {{'func.func' has argument 0, which holds elements of type complex<f64>, of which NumPy has none}}
func.func @main(%x: memref<8xcomplex<f64>>) {
  func.return
}

// -----

func.func @main() -> memref<8xf64> {
  %x = memref.alloc() : memref<8xf64>
  // expected-error@+1 {{'bufferization.to_tensor' reads an array that was never written}}
  %t = bufferization.to_tensor %x : memref<8xf64> to tensor<8xf64>
  func.return %x : memref<8xf64>
}

// -----

func.func @main() -> memref<8xf64> {
  %x = memref.alloc() : memref<8xf64>
  // expected-error@+1 {{'program.call' reads an array that was never written}}
  program.call @f(%x) : memref<8xf64>
  func.return %x : memref<8xf64>
}

// -----

func.func @main(%x: memref<8xf64>) {
  // expected-error@+1 {{'bufferization.to_tensor': expected tensor<8xf64>, what memref<8xf64> holds, got tensor<8xf32>}}
  %t = bufferization.to_tensor %x : memref<8xf64> to tensor<8xf32>
  func.return
}

// -----

func.func @main(%x: memref<8xf64>) {
  %t = bufferization.to_tensor %x : memref<8xf64> to tensor<8xf64>
  %v = memref.reinterpret_cast %x to offset: [0], sizes: [8], strides: [0] : memref<8xf64> to memref<8xf64, strided<[0]>>
  // expected-error@+1 {{'bufferization.materialize_in_destination' writes a view that has an element of its buffer twice}}
  bufferization.materialize_in_destination %t in writable %v : (tensor<8xf64>, memref<8xf64, strided<[0]>>) -> ()
  func.return
}

// -----

func.func @main(%x: memref<8xf64>) {
  %t = bufferization.to_tensor %x : memref<8xf64> to tensor<8xf64>
  // expected-error@+1 {{'bufferization.materialize_in_destination': an array is written with 'writable' and no result, a tensor the other way round}}
  bufferization.materialize_in_destination %t in %x : (tensor<8xf64>, memref<8xf64>) -> ()
  func.return
}

// -----

func.func @main(%x: memref<8xf64>) {
  // expected-error@+1 {{'program.call': expected ascending numbers of its 1 operands as 'writes', got [1]}}
  program.call @f(%x) {writes = array<i64: 1>} : memref<8xf64>
  func.return
}

// -----

func.func @main(%x: memref<8xf64>) {
  // expected-error@+1 {{'memref.reinterpret_cast' expected 1 offset, got 0}}
  %v = memref.reinterpret_cast %x to offset: [], sizes: [4], strides: [2] : memref<8xf64> to memref<4xf64, strided<[2]>>
  func.return
}
