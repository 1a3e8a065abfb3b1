// RUN: irkit-opt --list-passes | filecheck %s --check-prefix=PASSES
// RUN: irkit-opt --list-dialects | filecheck %s --check-prefix=DIALECTS
// RUN: irkit-opt --explain-pass test-mark | filecheck %s --check-prefix=EXPLAIN
// RUN: irkit-opt --explain-pass canonicalize | filecheck %s --check-prefix=UPSTREAM
// RUN: irkit-opt --help | filecheck %s --check-prefix=HELP

// PASSES:      irkit:
// PASSES:        test-mark {{ *}}Mark every relu with an attribute, so that a change shows.
// PASSES:      xdsl:
// PASSES:        canonicalize
// PASSES:        dce

// DIALECTS:      irkit:
// DIALECTS-NEXT:   dist  {{[0-9]+}} ops
// DIALECTS-NEXT:   graph  {{[0-9]+}} ops
// DIALECTS-NEXT:   host  {{[0-9]+}} ops
// DIALECTS-NEXT:   loop  {{[0-9]+}} ops
// DIALECTS-NEXT:   program  {{[0-9]+}} ops
// DIALECTS-NEXT:   task  {{[0-9]+}} ops
// DIALECTS-NEXT:   te  {{[0-9]+}} ops
// DIALECTS-NEXT: xdsl:
// DIALECTS:        arith
// DIALECTS:        linalg

// EXPLAIN:       test-mark
// EXPLAIN-EMPTY:
// EXPLAIN-NEXT:  Mark every relu with an attribute, so that a change shows.
// EXPLAIN-EMPTY:
// EXPLAIN-NEXT:  options:
// EXPLAIN-NEXT:    label: str (default seen)

// UPSTREAM: canonicalize

// HELP: usage: irkit-opt
// HELP: --verify-each
// HELP: --check-semantics
