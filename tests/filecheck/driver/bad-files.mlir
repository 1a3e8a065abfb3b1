// RUN: not irkit-opt %S/absent.mlir 2>&1 | filecheck %s --check-prefix=ABSENT
// RUN: not irkit-opt %S 2>&1 | filecheck %s --check-prefix=FOLDER
// RUN: not irkit-opt %S/Inputs/junk.bin 2>&1 | filecheck %s --check-prefix=JUNK
// RUN: not irkit-opt %S/Inputs/zero.bin 2>&1 | filecheck %s --check-prefix=ZERO
// RUN: cat %S/Inputs/zero.bin > %t.onnx
// RUN: not irkit-run %t.onnx 2>&1 | filecheck %s --check-prefix=ONNX
// RUN: not irkit-opt %s -o %t/absent/out.mlir 2>&1 | filecheck %s --check-prefix=OUTPUT
// RUN: irkit-opt %s > %t.mlir
// RUN: cat %S/Inputs/zero.bin > %t.safetensors
// RUN: not irkit-opt %t.mlir 2>&1 | filecheck %s --check-prefix=WEIGHTS

// ABSENT: {{^}}error: cannot read '{{.*}}absent.mlir': No such file or directory
// ABSENT-NOT: {{.}}
// FOLDER: {{^}}error: cannot read '{{.*}}driver': Is a directory
// JUNK: junk.bin: error: not MLIR text: byte 0xff at offset 8 is not UTF-8
// ZERO: zero.bin: error: not MLIR text: zero byte at offset 16
// ONNX: t.onnx: error: not MLIR text: zero byte at offset 16; 'irkit-translate {{.*}}t.onnx -o {{.*}}.mlir' imports such a model
// OUTPUT: {{^}}error: cannot write '{{.*}}out.mlir': No
// WEIGHTS: {{^}}error: '{{.*}}t.safetensors' is not a valid .safetensors file
builtin.module {}
