"""`--update-checks`: what is rewritten, and what stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from filecheck_runner import FileCheckError, FileCheckTest

PROGRAM = """\
// A comment about @a.
func.func @a(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
// A comment about @b.
// CHECK-LABEL: func.func @b
// CHECK:         [[Y:%.*]] = graph.tanh %x
// CHECK-NOT:     graph.relu
func.func @b(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.tanh %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
"""


@pytest.fixture
def make(tmp_path: Path):
    def test_of(text: str) -> FileCheckTest:
        path = tmp_path / "case.mlir"
        path.write_text(text)
        return FileCheckTest(path, tmp_path)

    return test_of


def test_only_the_section_that_fails_is_rewritten(make):
    test = make(
        "// RUN: irkit-opt %s | filecheck %s\n"
        "// CHECK-LABEL: func.func @a\n// CHECK-NEXT: graph.exp\n// CHECK-NOT: graph.abs\n"
        + PROGRAM
    )
    with pytest.raises(FileCheckError) as failure:
        test.run()
    message = str(failure.value)
    assert f"`python -m pytest {test.path} --update-checks` would write" in message
    assert "-// CHECK-NEXT: graph.exp" in message
    assert "+// CHECK-NEXT:      %y = graph.relu %x : (tensor<4xf32>) -> tensor<4xf32>" in message
    test.update()
    text = test.path.read_text()
    assert text.endswith(PROGRAM)
    assert "graph.exp" not in text
    test.run()


def test_a_test_without_checks_gets_them(make):
    test = make("// RUN: irkit-opt %s | filecheck %s --check-prefix=OUT\n// CHECK: x\n" + PROGRAM)
    test.update()
    text = test.path.read_text()
    assert "// OUT-LABEL:   func.func @a" in text
    assert "// OUT-LABEL:   func.func @b" in text
    test.run()


def test_a_label_that_is_gone_rewrites_the_prefix(make):
    test = make(
        "// RUN: irkit-opt %s | filecheck %s --check-prefix=P\n// P-LABEL: func.func @gone\n// P: x\n"
        + PROGRAM
    )
    test.update()
    text = test.path.read_text()
    assert "@gone" not in text
    assert "// P-LABEL:   func.func @a" in text
    assert "// CHECK-NOT:     graph.relu" in text


def test_places_in_the_file_are_relative_and_patterns_are_literal(make):
    test = make(
        "// RUN: not irkit-opt %s -p canonicalize{x=1} 2>&1 | filecheck %s --check-prefix=ERR\n"
        "// RUN: irkit-opt %s --print-debuginfo | filecheck %s --check-prefix=LOC\n"
        "// RUN: irkit-opt %s -p canonicalize --remarks=missed 2>&1 | filecheck %s --check-prefix=REM\n"
        "// ERR: wrong\n// REM: wrong\n// LOC: wrong\n"
        "func.func @a() attributes {a = [[1], [2]]} {\n"
        "  %0 = arith.constant dense<1.0> : tensor<4xf32>\n"
        "  %1 = graph.reshape %0 {shape = array<i64: 2, 2>} : (tensor<4xf32>) -> tensor<2x2xf32>\n"
        '  "test.op"(%1) : (tensor<2x2xf32>) -> ()\n'
        "  func.return\n}\n"
    )
    test.update()
    text = test.path.read_text()
    assert "case.mlir:[[# @LINE +" in text
    assert 'loc("{{.*}}case.mlir":[[# @LINE +' in text
    assert str(test.path) not in text
    assert r"{{\[\[}}1 : i64]" in text
    # Lines may move: the places move with them.
    lines = text.split("\n")
    test.path.write_text("\n".join([*lines[:3], "", "", *lines[3:]]))
    test.run()


def test_what_is_no_mismatch_is_not_updated(make):
    text = "// RUN: irkit-opt %s -p no-such-pass | filecheck %s\n// CHECK: x\n"
    test = make(text)
    with pytest.raises(FileCheckError, match="unknown pass"):
        test.update()
    assert test.path.read_text() == text


def test_expected_diagnostics_are_updated(make):
    test = make(
        "// RUN: irkit-opt %s --verify-diagnostics --split-input-file -p test-mark\n"
        "// expected-error@+1 {{unknown op 'graph.gone'}}\n"
        '"graph.rleu"() : () -> ()\n'
        "// -----\n"
        "  // expected-error@below {{nothing wrong here}}\n"
        "func.func @f() { func.return }\n"
        "// -----\n"
        '  "graph.rleu"() : () -> ()\n'
    )
    test.update()
    message = "{{unknown op 'graph.rleu'; did you mean 'graph.relu'?}}"
    assert test.path.read_text().split("\n")[1:] == [
        f"// expected-error@+1 {message}",
        '"graph.rleu"() : () -> ()',
        "// -----",
        "func.func @f() { func.return }",
        "// -----",
        f"  // expected-error@below {message}",
        '  "graph.rleu"() : () -> ()',
        "",
    ]
    test.run()
