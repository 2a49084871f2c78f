"""Modules, passes, contexts, instruments: the API of TVM's pass infrastructure, name by name."""

import asyncio
import io
import pickle
import tempfile
import threading
import unittest
from pathlib import Path

import tenon
from tenon import transform

TEXT = """fn @main(%x: f32[4]) -> f32[4] {
  %a = add(const(f32[], [1]), const(f32[], [2]))
  %b = multiply(%x, %a)
  ret %b
}
fn @other(%x: f32[4]) -> f32[4] {
  %a = negative(%x)
  %unused = exp(%a)
  ret %a
}
"""


def parse():
    return tenon.parse(TEXT)


class Modules(unittest.TestCase):
    def test_texts_are_read_and_written(self):
        module = parse()
        self.assertEqual(module.names(), ["main", "other"])
        self.assertEqual((len(module), list(module), "main" in module), (2, ["main", "other"], True))
        self.assertEqual(tenon.parse(module.text()), module)
        self.assertEqual(repr(module), "<tenon.Module of @main, @other>")
        with self.assertRaisesRegex(KeyError, "`left`; it has main, other"):
            module["left"]
        with tempfile.TemporaryDirectory() as folder:
            module.save(Path(folder) / "m.ir")
            self.assertEqual(tenon.read(Path(folder) / "m.ir"), module)
        self.assertEqual(pickle.loads(pickle.dumps(module)), module)

    def test_equality_is_structural(self):
        module = parse()
        renamed = tenon.parse(TEXT.replace("%a", "%sum"))
        other = tenon.parse(TEXT.replace("multiply", "divide"))
        self.assertEqual((module, hash(module)), (renamed, hash(renamed)))
        self.assertNotEqual(module, other)
        self.assertEqual(module["other"], other["other"])
        self.assertEqual(len({module, renamed, other}), 2)
        self.assertNotEqual(module, "text")

    def test_functions_are_replaced(self):
        module = parse()
        more = module.parse("fn @main(%x: f32[4]) -> f32[4] {\n  ret %x\n}\n")
        changed = module.update(more).update({"third": module["other"]}).without("other")
        self.assertEqual(changed.names(), ["main", "third"])
        self.assertEqual(changed["third"], module["other"])
        self.assertEqual(module.names(), ["main", "other"])
        with self.assertRaisesRegex(tenon.ModelError, "another context"):
            module.update(parse())
        self.assertFalse(module["main"].is_program or module["main"].is_private)
        self.assertIn("fn @main", str(module["main"]))

    def test_modules_are_shown(self):
        long = tenon.parse(
            "fn @main(%x: f32[64]) {\n  %y = add(%x, const(f32[64], 2))\n  ret %y\n}\n"
        )
        page = parse()._repr_html_()
        self.assertIn("<span", page)
        self.assertNotIn("<script", page)
        self.assertLess(len(str(long)), len(long.text()) + 200)


class Passes(unittest.TestCase):
    def test_passes_of_plugins_are_functions(self):
        folded = transform.FoldConstant()(parse())
        self.assertIn("const(f32[], 3)", str(folded))
        self.assertNotIn("exp", str(transform.DeadCodeElimination()(parse())))
        info = transform.FoldConstant().info
        self.assertEqual((info.name, info.plugin), ("relax.FoldConstant", "tenon.graph"))
        self.assertIn("FoldConstant", dir(transform))
        self.assertEqual(transform.FoldConstant.__doc__, info.summary)
        with self.assertRaisesRegex(AttributeError, "no plugin has a pass `FoldNothing`"):
            transform.FoldNothing
        with self.assertRaises(tenon.PipelineError):
            transform.FoldConstant(nothing=1)
        with self.assertRaises(tenon.PipelineError):
            transform.pass_("FoldNothing")
        with self.assertRaises(TypeError):
            transform.FoldConstant()("text")

    def test_every_pass_of_every_plugin_can_be_made(self):
        names = [each["pass"]["pass"] for each in tenon.Session.default().passes()]
        self.assertGreater(len(names), 70)
        for name in names:
            made = getattr(transform, name.rsplit(".", 1)[-1])()
            self.assertEqual(made.info.name, name)

    def test_sequences(self):
        both = tenon.Sequential([transform.FoldConstant(), "DeadCodeElimination"], name="both")
        made = both(parse())
        self.assertIn("const(f32[], 3)", str(made))
        self.assertNotIn("exp", str(made))
        self.assertEqual(tenon.Sequential("FoldConstant, DeadCodeElimination")(parse()), made)
        self.assertEqual(tenon.Sequential([both])(parse()), made)
        self.assertEqual(tenon.Sequential([])(parse()), parse())
        with self.assertRaisesRegex(TypeError, "whole pipeline"):
            tenon.Sequential([tenon.Sequential("FoldConstant, Normalize")])(parse())

    def test_levels_and_lists(self):
        level = transform.FoldConstant().info.opt_level
        self.assertGreater(level, 0)
        low = tenon.PassContext(opt_level=0)
        with low:
            self.assertEqual(tenon.Sequential([transform.FoldConstant()])(parse()), parse())
        with tenon.PassContext(opt_level=0, required_pass=["FoldConstant"]):
            self.assertNotEqual(tenon.Sequential([transform.FoldConstant()])(parse()), parse())
        with tenon.PassContext(opt_level=3, disabled_pass=[transform.FoldConstant()]):
            self.assertEqual(tenon.Sequential([transform.FoldConstant()])(parse()), parse())

    def test_contexts_nest_freshly(self):
        self.assertEqual(tenon.PassContext.current().opt_level, 2)
        with tenon.PassContext(opt_level=3, disabled_pass=["FoldConstant"]) as outer:
            with tenon.PassContext(opt_level=1) as inner:
                self.assertIs(tenon.PassContext.current(), inner)
                self.assertEqual(inner.disabled_pass, [])
                inside = []
                thread = threading.Thread(
                    target=lambda: inside.append(tenon.PassContext.current().opt_level)
                )
                thread.start()
                thread.join()
                self.assertEqual(inside, [2])
            self.assertIs(tenon.PassContext.current(), outer)
        self.assertEqual(tenon.PassContext.current().opt_level, 2)

    def test_tasks_have_contexts_of_their_own(self):
        async def task(level):
            with tenon.PassContext(opt_level=level):
                await asyncio.sleep(0)
                return tenon.PassContext.current().opt_level == level

        async def all_of_them():
            return await asyncio.gather(*(task(level) for level in range(100)))

        self.assertTrue(all(asyncio.run(all_of_them())))

    def test_options_of_contexts(self):
        configs = tenon.PassContext.list_configs()
        self.assertGreater(len(configs), 10)
        key = next(key for key, it in configs.items() if it["option"]["type"] == "int")
        with tenon.PassContext(config={key: configs[key]["option"]["default"]}):
            transform.FoldConstant()(parse())
        with tenon.PassContext(config={"no.such": 1}), self.assertRaises(tenon.PipelineError):
            transform.FoldConstant()(parse())


class PythonPasses(unittest.TestCase):
    def test_a_module_pass_is_a_function(self):
        @tenon.module_pass(opt_level=2, name="keep-main")
        def keep(module, context):
            """Keeps main alone."""
            self.assertEqual(context.opt_level, 3)
            self.assertIs(tenon.PassContext.current(), context)
            return module.without(*[name for name in module if name != "main"])

        self.assertEqual((keep.info.name, keep.info.summary), ("keep-main", "Keeps main alone."))
        with tenon.PassContext(opt_level=3):
            self.assertEqual(keep(parse()).names(), ["main"])
            both = tenon.Sequential([keep, transform.FoldConstant()])(parse())
        self.assertEqual(both.names(), ["main"])
        self.assertIn("const(f32[], 3)", str(both))

    def test_a_module_pass_is_a_class(self):
        @tenon.module_pass(opt_level=0)
        class Add:
            def __init__(self, name):
                self.name = name

            def transform_module(self, module, context):
                return module.update({self.name: module["main"]})

        self.assertEqual(Add("more")(parse()).names(), ["main", "other", "more"])
        with self.assertRaisesRegex(TypeError, "no method `transform_module`"):
            tenon.module_pass(opt_level=0)(type("Empty", (), {}))

    def test_a_function_pass_sees_each_function(self):
        seen = []

        @tenon.function_pass(opt_level=1)
        def look(function, module, context):
            seen.append(str(function))
            return module["other"] if "multiply" in str(function) else function

        made = look(parse())
        self.assertEqual(len(seen), 2)
        self.assertEqual(made["main"], parse()["other"])

    def test_a_program_pass_sees_programs_alone(self):
        seen = []

        @tenon.prim_func_pass(opt_level=0)
        def look(function, module, context):
            seen.append(function.is_program)
            return function

        with tenon.PassContext(opt_level=3):
            tenon.Sequential("phase(ingest), phase(optimize), phase(legalize)")(parse())
            lowered = tenon.Sequential("phase(ingest), phase(optimize), phase(legalize)")(parse())
            self.assertEqual(look(lowered), lowered)
        self.assertTrue(seen and all(seen))

    def test_a_level_has_to_be_given(self):
        for decorator in (tenon.module_pass, tenon.function_pass, tenon.prim_func_pass):
            with self.assertRaisesRegex(ValueError, "opt_level"):
                decorator(lambda module, context: module)

    def test_what_a_pass_raises_is_the_cause(self):
        @tenon.module_pass(opt_level=0)
        def fails(module, context):
            raise ZeroDivisionError("by hand")

        for run in (fails, tenon.Sequential([tenon.Sequential([fails])])):
            with self.assertRaises(tenon.PassError) as told:
                run(parse())
            self.assertIsInstance(told.exception.__cause__, ZeroDivisionError)
            self.assertIn("in fails", str(told.exception))

    def test_what_is_no_module_is_told(self):
        for made in (None, 3, "text"):
            with self.subTest(made), self.assertRaises(tenon.PassError) as told:
                tenon.module_pass(lambda module, context, made=made: made, opt_level=0)(parse())
            self.assertIn("a Module is expected", str(told.exception))
        with self.assertRaises(tenon.PassError) as told:
            tenon.function_pass(lambda function, module, context: module, opt_level=0)(parse())
        self.assertIn("returns a Function", str(told.exception))
        # A module of another context holds terms that mean something else there.
        with self.assertRaises(tenon.PassError):
            tenon.module_pass(lambda module, context: parse(), opt_level=0)(parse())

    def test_a_pass_in_a_compile(self):
        seen = []

        @tenon.module_pass(opt_level=0)
        def look(module, context):
            seen.append(module.names())
            return module

        import numpy as np

        with self.assertRaisesRegex(tenon.CompileError, "pass"):
            tenon.compile(parse(), pipeline=look)
        self.assertEqual(seen, [["main", "other"]])
        compiled = tenon.compile(look(parse()), threads=1)
        np.testing.assert_array_equal(compiled(np.ones(4, np.float32)), [3] * 4)


class Instruments(unittest.TestCase):
    def test_the_order_of_calls(self):
        said = []

        @tenon.instrument.pass_instrument
        class Says:
            def __init__(self, name):
                self.name = name

            def enter_pass_ctx(self):
                said.append(f"{self.name} in")

            def exit_pass_ctx(self):
                said.append(f"{self.name} out")

            def should_run(self, module, info):
                said.append(f"{self.name} {info.name}?")
                return "Dead" not in info.name or self.name == "a"

            def run_before_pass(self, module, info):
                said.append(f"{self.name} before {len(module)}")

            def run_after_pass(self, module, info):
                said.append(f"{self.name} after {len(module)}")

        with tenon.PassContext(opt_level=3, instruments=[Says("a"), Says("b")]) as context:
            transform.FoldConstant()(parse())
            transform.DeadCodeElimination()(parse())
            context.override_instruments([Says("c")])
            with self.assertRaises(TypeError):
                context.override_instruments(None)
        fold = "relax.FoldConstant?"
        # Who refuses is the last that is asked.
        dead = "relax.DeadCodeElimination?"
        self.assertEqual(
            [it for it in said if "Normalize" not in it],
            ["a in", "b in", f"a {fold}", f"b {fold}", "a before 2", "b before 2", "a after 2",
             "b after 2", f"a {dead}", f"b {dead}", "a out", "b out", "c in", "c out"],
        )

    def test_methods_that_are_not_there_are_not_called(self):
        class Before:
            names = []

            def run_before_pass(self, module, info):
                self.names.append(info.name)

        with tenon.PassContext(instruments=[Before()]):
            transform.FoldConstant()(parse())
        self.assertIn("relax.FoldConstant", Before.names)
        with self.assertRaisesRegex(TypeError, "none of"):
            tenon.instrument.pass_instrument(type("Empty", (), {}))

    def test_what_fails_when_it_is_entered_leaves_those_before(self):
        said = []

        class Good:
            def enter_pass_ctx(self):
                said.append("in")

            def exit_pass_ctx(self):
                said.append("out")

        class Bad:
            def enter_pass_ctx(self):
                raise RuntimeError("bad")

        with self.assertRaisesRegex(RuntimeError, "bad"):
            with tenon.PassContext(instruments=[Good(), Bad(), Good()]):
                self.fail("not entered")
        self.assertEqual(said, ["in", "out"])
        self.assertEqual(tenon.PassContext.current().instruments, [])

    def test_what_fails_within_stays_the_error(self):
        class Bad:
            def exit_pass_ctx(self):
                raise RuntimeError("left badly")

        with self.assertRaisesRegex(ValueError, "within"):
            with tenon.PassContext(instruments=[Bad()]):
                raise ValueError("within")
        with self.assertRaisesRegex(RuntimeError, "left badly"):
            with tenon.PassContext(instruments=[Bad()]):
                pass

    def test_an_instrument_that_raises_stops_the_passes(self):
        class Bad:
            def run_before_pass(self, module, info):
                raise RuntimeError("seen enough")

        with tenon.PassContext(instruments=[Bad()]), self.assertRaises(tenon.PassError) as told:
            transform.FoldConstant()(parse())
        self.assertIn("seen enough", str(told.exception))

    def test_our_own_instruments(self):
        timing = tenon.instrument.PassTimingInstrument()
        out = io.StringIO()
        printing = tenon.instrument.PassPrintingInstrument([], ["FoldConstant"], file=out)
        verify = tenon.instrument.VerifyEach()
        with tenon.PassContext(instruments=[timing, printing, verify]):
            transform.FoldConstant()(parse())
            transform.DeadCodeElimination()(parse())
        self.assertIn("relax.FoldConstant", timing.render())
        self.assertIn("relax.DeadCodeElimination", timing.render())
        self.assertTrue(out.getvalue().startswith("// after relax.FoldConstant\nfn @main"))
        self.assertEqual(out.getvalue().count("// after"), 1)
        out = io.StringIO()
        with tenon.PassContext(instruments=[tenon.instrument.PrintBeforeAll(file=out)]):
            transform.FoldConstant()(parse())
        self.assertIn("// before relax.FoldConstant", out.getvalue())


if __name__ == "__main__":
    unittest.main()
