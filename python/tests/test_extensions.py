"""Operators, rules and schedules that are written in Python."""

import re
import unittest
from pathlib import Path

import numpy as np

import tenon
from tenon import _schedule, transform


@tenon.op("acme.swish", attrs={"beta": 1.0}, pattern="elementwise")
class Swish:
    """A number times the logistic function of it."""

    def infer(self, x, *, beta):
        return x

    def evaluate(self, x, *, beta):
        return x / (1 + np.exp(-beta * x))


@tenon.rule("canonicalize", Swish)
def plain(site, *, beta):
    [x] = site.args
    return site.call("multiply", x, site.call("sigmoid", site.call("multiply", x, site.constant(beta))))


@tenon.rule("simplify", "negative")
def twice(site):
    [x] = site.args
    inner = site.definition(x)
    return inner.args[0] if inner.op == "negative" else None


@tenon.rule("compute", Swish, benefit=2)
def program(asked, *, beta):
    [x], [y] = asked.inputs, asked.outputs
    if "f32" not in x:
        return None
    assert asked.target["kind"] == "cpu", asked.target
    return f"""prim @swish(%x: {x}, out %y: {y}) {{
  for %i in 0..6 {{
    block "swish" (%v: spatial = %i) {{
      %y[%v] = %x[%v] / (1.0 + exp(-{beta} * %x[%v]))
    }}
  }}
}}
"""


TEXT = """fn @main(%x: f32[6]) -> f32[6] {
  %y = acme.swish(%x) { beta = 2.0 }
  ret %y
}
"""

X = np.linspace(-2, 3, 6, dtype=np.float32)
WANTED = X / (1 + np.exp(-2 * X))


class Extensions(unittest.TestCase):
    def test_an_operator_is_known_to_its_session_alone(self):
        session = tenon.Session(extensions=[Swish])
        module = tenon.parse(TEXT, session=session)
        self.assertIn("%y: f32[6] = acme.swish(%x) { beta = 2.0 }", str(module))
        with self.assertRaisesRegex(tenon.ModelError, "no operator `acme.swish`"):
            tenon.parse(TEXT)
        builder = tenon.FunctionBuilder(tenon.Module.empty(session))
        made = builder.call("acme.swish", builder.param("x", "f32[n, 2]"))
        self.assertEqual(made.type, "f32[n, 2]")
        with self.assertRaisesRegex(tenon.ModelError, "gamma"):
            builder.call("acme.swish", made, gamma=1)

    def test_it_is_evaluated(self):
        session = tenon.Session(extensions=[Swish])
        text = TEXT.replace("(%x: f32[6])", "()").replace("acme.swish(%x)", "acme.swish(const(f32[6], [-2, -1, 0, 1, 2, 3]))")
        folded = transform.FoldConstant()(tenon.parse(text, session=session))
        [constant] = [node for node in tenon.nodes(folded["main"]) if node.kind == "constant"]
        np.testing.assert_allclose(constant.numpy(), WANTED, rtol=1e-6)

    def test_a_rule_says_what_it_is_by_others(self):
        session = tenon.Session(extensions=[Swish, plain])
        with self.assertRaisesRegex(tenon.Error, "acme.swish"):
            tenon.compile(TEXT, session=tenon.Session(extensions=[Swish]))
        compiled = tenon.compile(TEXT, threads=1, session=session)
        np.testing.assert_allclose(compiled(X), WANTED, rtol=1e-6)

    def test_a_rule_has_its_program(self):
        session = tenon.Session(extensions=[Swish, program])
        compiled = tenon.compile(TEXT, threads=1, validate=True, session=session)
        np.testing.assert_allclose(compiled(X), WANTED, rtol=1e-6)
        # It declines what it has no program for.
        with self.assertRaisesRegex(tenon.Error, "acme.swish"):
            tenon.compile(TEXT.replace("f32", "f64"), session=session)

    def test_a_rule_is_about_an_operator_of_a_plugin(self):
        text = "fn @main(%x: f32[4]) -> f32[4] {\n  %a = negative(%x)\n  %b = negative(%a)\n  %c = exp(%b)\n  ret %c\n}\n"
        passes = tenon.Sequential([transform.SimplifyExpr(), transform.DeadCodeElimination()])
        made = passes(tenon.parse(text, session=tenon.Session(extensions=[twice])))
        self.assertEqual([node.op for node in tenon.nodes(made["main"]) if node.op], ["exp"])

    def test_what_fails_is_told(self):
        class Fails:
            def infer(self, x):
                raise ZeroDivisionError("in infer")

            def evaluate(self, x):
                return x

        class Wrong:
            def infer(self, x):
                return x

            def evaluate(self, x):
                return np.zeros(3)

        made = tenon.Session(extensions=[tenon.op("acme.fails")(Fails), tenon.op("acme.wrong")(Wrong)])
        with self.assertRaisesRegex(tenon.ModelError, "ZeroDivisionError: in infer"):
            tenon.parse("fn @main(%x: f32[4]) {\n  %y = acme.fails(%x)\n  ret %y\n}\n", session=made)
        wrong = tenon.parse("fn @main() {\n  %y = acme.wrong(const(f32[2], 1))\n  ret %y\n}\n", session=made)
        builder = tenon.FunctionBuilder(wrong)
        with self.assertRaisesRegex(tenon.ModelError, "gives the shape \\[3\\], and its type says \\[2\\]"):
            builder._edit.fold(builder.call("acme.wrong", builder.constant([1, 2])).id)
        broken = tenon.rule("canonicalize", Swish)(lambda site, beta: 1 // 0)
        with self.assertRaisesRegex(tenon.PassError, "ZeroDivisionError"):
            tenon.compile(TEXT, session=tenon.Session(extensions=[Swish, broken]))
        nothing = tenon.rule("compute", Swish)(lambda asked, beta: "prim @p(")
        with self.assertRaisesRegex(tenon.Error, "the program of a rule"):
            tenon.compile(TEXT, session=tenon.Session(extensions=[Swish, nothing]))

    def test_what_is_none_is_refused(self):
        with self.assertRaisesRegex(ValueError, "not of 'gradient'"):
            tenon.rule("gradient", "exp")
        with self.assertRaisesRegex(TypeError, "no method `evaluate`"):
            tenon.op("acme.half")(type("Half", (), {"infer": lambda self, x: x}))
        with self.assertRaisesRegex(TypeError, "attribute `k`"):
            tenon.op("acme.k", attrs={"k": None})(type("K", (), {"infer": len, "evaluate": len}))
        with self.assertRaisesRegex(tenon.Error, "there is an operator `exp` already"):
            tenon.Session(extensions=[tenon.op("exp")(Swish._body.__class__)])
        with self.assertRaisesRegex(TypeError, "tenon.op or tenon.rule"):
            tenon.Session(extensions=[3])


class Schedules(unittest.TestCase):
    TEXT = "fn @main(%x: f32[64, 32], %w: f32[32, 50]) {\n  %p = matmul(%x, %w)\n  ret %p\n}\n"
    BEFORE = "phase(ingest), phase(optimize), phase(legalize), phase(fuse), phase(plan)"

    def scheduled(self):
        s = tenon.Schedule("matmul")
        block = s.anchor()
        i, j, k = s.loops(block, into=3)
        outer, inner = s.split(j, [None, 16], tail="guard")
        s.reorder([i, outer, k, inner])
        s.decompose_reduction(block, k)
        s.parallel(i)
        s.vectorize(inner)
        return s

    def test_a_program_is_scheduled_by_hand(self):
        s = self.scheduled()
        with tenon.PassContext(opt_level=3):
            lowered = tenon.Sequential(self.BEFORE)(tenon.parse(self.TEXT))
            made = str(s(lowered)["matmul"])
        self.assertIn("parallel {", made)
        self.assertIn("in 0..16 vectorized", made)
        self.assertIn("[v5, v6] = split(v3, [_, 16], tail = guard)", s.trace)
        pipeline = f"{self.BEFORE}, {s.text}, phase(target), phase(builtin)"
        x, w = (np.random.default_rng(0).standard_normal(shape).astype(np.float32) for shape in ((64, 32), (32, 50)))
        np.testing.assert_allclose(tenon.compile(self.TEXT, pipeline=pipeline, threads=1)(x, w), x @ w, atol=1e-4)

    def test_what_is_drawn_stands_in_the_trace(self):
        def traced(seed):
            s = tenon.Schedule("matmul", seed=seed)
            i = s.loops(s.anchor(), into=3)[0]
            factors = s.sample_perfect_tile(i, 3, max_innermost=8)
            self.assertEqual(len(factors), 3)
            self.assertEqual(len(s.split(i, factors)), 3)
            return str(s(lowered)["matmul"])

        with tenon.PassContext(opt_level=3):
            lowered = tenon.Sequential(self.BEFORE)(tenon.parse(self.TEXT))
            drawn = {re.search(r"decision = \[(.*?)\]", traced(seed))[1] for seed in range(20)}
            self.assertEqual(traced(7), traced(7))
        self.assertGreater(len(drawn), 5)
        for decision in drawn:
            a, b, c = map(int, decision.split(", "))
            self.assertEqual((a * b * c, c <= 8), (64, True))

    def test_what_does_not_hold_is_refused(self):
        s = tenon.Schedule()
        s.vectorize(s.loops(s.anchor(), into=3)[2])
        s.parallel(s.loop(s.block("nowhere"), "i"))
        with tenon.PassContext(opt_level=3):
            lowered = tenon.Sequential(self.BEFORE)(tenon.parse(self.TEXT))
            with self.assertRaises(tenon.PassError):
                s(lowered)
        self.assertEqual(len(s.split(s.anchor(), [None, 16], tail="cut")), 3)
        with self.assertRaisesRegex(AttributeError, "no primitive `tile`; there are block"):
            s.tile
        with self.assertRaisesRegex(TypeError, "say into="):
            s.loops(s.anchor())
        with self.assertRaisesRegex(TypeError, "`tails` is given"):
            s.split(s.anchor(), [2], tails="cut")
        with self.assertRaisesRegex(TypeError, "and 3 are given"):
            s.parallel(1, 2, 3)
        with self.assertRaisesRegex(TypeError, "not float"):
            s.split(s.anchor(), [0.5])

    def test_all_primitives_are_there(self):
        page = Path(__file__).resolve().parents[2] / "docs" / "schedules.md"
        listed = page.read_text().split("## The primitives\n\n```\n")[1].split("```")[0]
        stated = [line for line in listed.splitlines() if line and not line.startswith(" ")]
        self.assertEqual(stated, [line.rsplit(" ", 1)[0] for line in _schedule._PRIMITIVES.split("\n") if line])


if __name__ == "__main__":
    unittest.main()
