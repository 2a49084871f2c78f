"""The examples of TVM's pages on its pass infrastructure, and on adding a pass, name by name.

What stands there in C++ is written in Python here; `docs/from-tvm.md` says which name became which.
"""

import unittest

import tenon
from tenon import instrument, transform


class PassInfrastructure(unittest.TestCase):
    """"Pass Infrastructure": Python frontend."""

    def test_a_module_pass_adds_a_function(self):
        # @relay.transform.module_pass(opt_level=2)
        @transform.module_pass(opt_level=2)
        def add_abs(mod, ctx):
            builder = tenon.FunctionBuilder(mod)
            x = builder.param("x", "f32[10]")  # relay.var("x", relay.TensorType((10,), "float32"))
            func = builder.finish(builder.call("abs", x))  # relay.Function([x], relay.abs(x))
            return mod.update({"abs": func})  # new_mod = tvm.IRModule({gv: func}); new_mod.update(mod)

        self.assertIsInstance(add_abs, transform.Pass)
        self.assertEqual(add_abs.info.opt_level, 2)
        mod = tenon.Module.empty()  # mod = tvm.IRModule()
        mod = add_abs(mod)
        self.assertEqual(mod.names(), ["abs"])
        self.assertEqual(
            mod, tenon.parse("fn @abs(%x: f32[10]) {\n  %y = abs(%x)\n  ret %y\n}\n")
        )

    def test_a_function_pass_replaces_each_function(self):
        @transform.function_pass(opt_level=1)
        class TestReplaceFunc:
            def __init__(self, new_func):
                self.new_func = new_func

            def transform_function(self, func, mod, ctx):
                # Just for demo purposes: transform func to new_func.
                return self.new_func

        def function(body, module=None):
            builder = tenon.FunctionBuilder(module)
            x = builder.param("x", "f32[10, 20]")  # x = relay.var("x", shape=(10, 20))
            return builder.finish(body(builder, x))

        input_mod = tenon.Module.empty()
        f1 = function(lambda builder, x: x, input_mod)  # relay.Function([x], x)
        f2 = function(lambda builder, x: builder.call("log", x), input_mod)
        input_mod = input_mod.update({"f1": f1, "f2": f2})
        fpass = TestReplaceFunc(f1)
        res_mod = fpass(input_mod)
        self.assertEqual((res_mod["f1"], res_mod["f2"]), (f1, f1))
        self.assertNotEqual(input_mod["f2"], f1)

    def test_a_pass_has_info_and_is_called(self):
        fold = transform.FoldConstant()  # def FoldConstant(): return _transform.FoldConstant()
        self.assertIsInstance(fold, tenon.Pass)
        self.assertEqual(fold.info.name.rsplit(".", 1)[-1], "FoldConstant")
        self.assertIsInstance(fold.info, transform.PassInfo)

    def test_the_context_is_found_and_configures(self):
        with transform.PassContext(
            opt_level=3, required_pass=["DeadCodeElimination"], disabled_pass=["FoldConstant"]
        ) as context:
            self.assertIs(transform.PassContext.current(), context)
            self.assertEqual(context.required_pass, ["DeadCodeElimination"])
        self.assertIsNot(transform.PassContext.current(), context)

    def test_what_decides_whether_a_pass_runs(self):
        """First disabled_pass, then required_pass, then opt_level."""
        mod = tenon.parse("fn @main(%x: f32[4]) -> f32[4] {\n  %u = exp(%x)\n  ret %x\n}\n")
        seq = tenon.Sequential([transform.DeadCodeElimination()])
        name = "DeadCodeElimination"
        for context, runs in (
            (transform.PassContext(opt_level=3), True),
            (transform.PassContext(opt_level=0), False),
            (transform.PassContext(opt_level=0, required_pass=[name]), True),
            (transform.PassContext(opt_level=3, disabled_pass=[name]), False),
            (transform.PassContext(opt_level=0, required_pass=[name], disabled_pass=[name]), False),
        ):
            with context:
                self.assertEqual(seq(mod) != mod, runs, vars(context))

    def test_a_sequence_has_what_a_pass_has(self):
        seq = tenon.Sequential(
            [transform.FoldConstant(), transform.DeadCodeElimination()], opt_level=2, name="both", required=["SimplifyExpr"]
        )
        self.assertEqual((seq.info.name, seq.info.opt_level, seq.info.required), ("both", 2, ["SimplifyExpr"]))
        seen = []

        @instrument.pass_instrument
        class Sees:
            def run_before_pass(self, mod, info):
                seen.append(info.name.rsplit(".", 1)[-1])

        with transform.PassContext(opt_level=3, instruments=[Sees()]):
            # As there, what the outermost sequence requires is no matter.
            tenon.Sequential([seq])(tenon.parse("fn @main(%x: f32[4]) -> f32[4] {\n  ret %x\n}\n"))
        self.assertLess(seen.index("SimplifyExpr"), seen.index("FoldConstant"))
        self.assertLess(seen.index("FoldConstant"), seen.index("DeadCodeElimination"))


class PassInstruments(unittest.TestCase):
    """"Pass Infrastructure": Pass Instrument."""

    def setUp(self):
        self.mod = tenon.parse("fn @main(%x: f32[4]) -> f32[4] {\n  ret %x\n}\n")
        self.said = said = []

        @instrument.pass_instrument
        class PI:
            def enter_pass_ctx(self):
                said.append("EnterPassContext")

            def exit_pass_ctx(self):
                said.append("ExitPassContext")

            def should_run(self, mod, info):
                said.append(f"ShouldRun({info.name})")
                return info.name != "Refused"

            def run_before_pass(self, mod, info):
                said.append("RunBeforePass")

            def run_after_pass(self, mod, info):
                said.append("RunAfterPass")

        self.instrument = PI()

        def named(name):
            return transform.module_pass(lambda mod, ctx: said.append(name) or mod, opt_level=0, name=name)

        self.pass1, self.pass2, self.refused = map(named, ("Pass1", "Pass2", "Refused"))

    def test_the_call_sequence(self):
        with transform.PassContext(instruments=[self.instrument]):
            for each in (self.pass1, self.refused, self.pass2):
                each(self.mod)
        self.assertEqual(
            self.said,
            ["EnterPassContext",
             "ShouldRun(Pass1)", "RunBeforePass", "Pass1", "RunAfterPass",
             "ShouldRun(Refused)",
             "ShouldRun(Pass2)", "RunBeforePass", "Pass2", "RunAfterPass",
             "ExitPassContext"],
        )  # fmt: skip

    def test_required_passes_are_not_asked_about(self):
        with transform.PassContext(instruments=[self.instrument], required_pass=["Refused"]):
            self.refused(self.mod)
        self.assertEqual(self.said[1:-1], ["RunBeforePass", "Refused", "RunAfterPass"])

    def test_instruments_of_the_current_context_are_overridden(self):
        with transform.PassContext(instruments=[self.instrument]):
            cur_pass_ctx = transform.PassContext.current()
            timing = instrument.PassTimingInstrument()
            cur_pass_ctx.override_instruments([timing])
            self.assertEqual(self.said, ["EnterPassContext", "ExitPassContext"])
            self.pass1(self.mod)
            result = timing.render()
        self.assertIn("Pass1", result)
        self.assertEqual(self.said, ["EnterPassContext", "ExitPassContext", "Pass1"])


class CallChecker(tenon.ExprVisitor):
    """class CallChecker : public ExprVisitor"""

    def check(self, func):
        self.found = False
        self.visit(func)
        return self.found

    def visit_call(self, call):
        self.found = True


class IfCollapser(tenon.ExprMutator):
    """class IfCollapser : public ExprMutator: every if is its true branch."""

    def rewrite_if(self, node):
        condition, true_branch, false_branch = node.operands
        return true_branch


class ConstantChecker:
    """A constant, or a tuple of constants. What was found out is kept, so nothing is looked at twice."""

    def __init__(self):
        self.memo = {}

    def check(self, node):
        if node not in self.memo:
            is_tuple = node.kind == "tuple"
            self.memo[node] = node.kind == "constant" or (is_tuple and all(map(self.check, node.operands)))
        return self.memo[node]


class ConstantFolder(tenon.ExprMutator):
    """class ConstantFolder : public ExprMutator"""

    def __init__(self):
        self.checker = ConstantChecker()

    def rewrite_binding(self, variable, value):
        """VisitExpr_(const LetNode* op): a value that is constant goes where the variable is read."""
        return value if self.checker.check(value) else None

    def rewrite_tuple_get_item(self, node):
        """VisitExpr_(const TupleGetItemNode* op)"""
        [made] = node.operands
        return made.operands[node.index] if made.kind == "tuple" else None

    def rewrite_call(self, call):
        """VisitExpr_(const CallNode* call)"""
        # It is harmful to fold ones(shape=(4, 5)).
        if not call.args or call.op is None:
            return None
        return self.fold(call) if all(map(self.checker.check, call.args)) else None


@transform.function_pass(opt_level=2, name="FoldConstantInPython")
def fold_constant(func, mod, ctx):
    """TVM_REGISTER_GLOBAL("relay._transform.FoldConstant"): CreateFunctionPass(pass_func, 2, "FoldConstant", {})"""
    return ConstantFolder().rewrite(func, mod)


class AddingAPass(unittest.TestCase):
    """"Adding a Compiler Pass"."""

    def test_calls_are_found(self):
        module = tenon.parse(
            "fn @main(%x: f32[4]) -> f32[4] {\n  %y = exp(%x)\n  ret %y\n}\nfn @same(%x: f32[4]) -> f32[4] {\n  ret %x\n}\n"
        )
        checker = CallChecker()
        self.assertTrue(checker.check(module["main"]))
        self.assertFalse(checker.check(module["same"]))

    def test_ifs_are_collapsed(self):
        module = tenon.parse("""
fn @main(%c: bool[], %x: f32[4]) -> f32[4] {
  %y = if %c {
    %e = exp(%x)
    ret %e
  } else {
    ret %x
  }
  ret %y
}
""")
        collapsed = IfCollapser().rewrite(module["main"], module)
        kinds = [node.kind for node in tenon.nodes(collapsed)]
        self.assertNotIn("if", kinds)
        self.assertEqual([node.op for node in tenon.nodes(collapsed) if node.op], ["exp"])
        self.assertIs(IfCollapser().rewrite(collapsed, module), collapsed)

    def test_constants_are_folded(self):
        module = tenon.parse("""
fn @main(%x: f32[2]) -> f32[2] {
  %a = add(const(f32[], 1), const(f32[], 2))
  %f = (%a, %x).0
  %b = multiply(%f, const(f32[], 4))
  %y = add(%x, %b)
  %z = add(%y, %x)
  ret %z
}
""")
        folded = fold_constant(module)
        calls = [node for node in tenon.nodes(folded["main"]) if node.op]
        self.assertEqual([each.op for each in calls], ["add", "add"])
        self.assertEqual(calls[0].args[1].numpy().tolist(), 12)
        self.assertEqual((fold_constant.info.name, fold_constant.info.opt_level), ("FoldConstantInPython", 2))
        # And what the plugin's pass of that name makes of it.
        theirs = tenon.Sequential([transform.FoldConstant(), transform.DeadCodeElimination()])(module)
        self.assertEqual(transform.DeadCodeElimination()(folded), theirs)


class Nodes(unittest.TestCase):
    def test_functions_are_built(self):
        import numpy as np

        module = tenon.Module.empty()
        builder = tenon.FunctionBuilder(module)
        x, w = builder.param("x", "f32[n, 3]"), builder.param("w", "f32[3, 2]")
        y = builder.call("nn.softmax", x @ w + builder.constant([1, 2]), axis=-1)
        self.assertEqual((y.type, y.kind, y.op, y.attrs), ("f32[n, 2]", "call", "nn.softmax", {"axis": -1}))
        pair = builder.tuple(-y, y)
        first = builder.item(pair, 0)
        self.assertEqual((first.index, first.type), (0, "f32[n, 2]"))
        helper = builder.finish(first)
        module = module.update({"helper": helper})
        caller = tenon.FunctionBuilder(module)
        a, b = caller.param("a", "f32[1, 3]"), caller.param("b", "f32[3, 2]")
        module = module.update({"main": caller.finish([caller.call_function("helper", a, b)])})
        run = tenon.compile(module, function="main", threads=1)
        given = np.ones((1, 3), np.float32), np.zeros((3, 2), np.float32)
        np.testing.assert_allclose(run(*given), -np.array([[1, np.e]]) / (1 + np.e), rtol=1e-6)

    def test_what_does_not_fit_is_told_where_it_stands(self):
        builder = tenon.FunctionBuilder()
        x, y = builder.param("x", "f32[2]"), builder.param("y", "f32[3]")
        with self.assertRaisesRegex(tenon.ModelError, "exq"):
            builder.call("exq", x)
        with self.assertRaises(tenon.ModelError):
            builder.call("add", x, y)
        with self.assertRaises(tenon.ModelError):
            builder.param("z", "f33[2]")
        with self.assertRaisesRegex(ValueError, "another function"):
            builder.call("exp", tenon.FunctionBuilder().param("x", "f32[2]"))
        with self.assertRaisesRegex(TypeError, "constant"):
            builder.call("add", x, 1.0)
        with self.assertRaisesRegex(TypeError, "is of the kind var"):
            x.args
        with self.assertRaisesRegex(tenon.ModelError, "nowhere"):
            builder.finish(builder.call_function("nowhere", x))

    def test_a_deep_function_is_visited_without_recursion(self):
        builder = tenon.FunctionBuilder()
        x = builder.param("x", "f32[2]")
        for _ in range(20_000):
            x = -x
        function = builder.finish(x)
        self.assertEqual(sum(node.op == "negative" for node in tenon.nodes(function)), 20_000)


if __name__ == "__main__":
    unittest.main()
