"""Passes in files of Python that are dropped into a folder of a registry."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import tenon

PROGRAM = Path(tenon.__file__).parent / "bin" / "tenon"

TEXT = """fn @main(%x: f32[4]) -> f32[4] {
  %y: f32[4] = add(%x, %x)
  ret %y
}

fn @helper(%x: f32[4]) -> f32[4] {
  ret %x
}

fn @left(%x: f32[4]) -> f32[4] {
  ret %x
}
"""

TIDY = '''"""Passes that tidy up."""
# /// tenon
# plugin = "acme.tidy"
# version = "1.2.0"
#
# [[passes]]
# pass = "acme.KeepMain"
# kind = "module"
# phase = "optimize"
# after = ["relax.FoldConstant"]
# doc = "Drops all functions but main."
#
# [[passes.options]]
# name = "others"
# type = "[str]"
# default = []
# help = "more functions that stay"
#
# [[passes]]
# pass = "acme.Same"
# kind = "function"
#
# [[passes]]
# pass = "acme.Doubled"
# kind = "module"
#
# [[passes]]
# pass = "acme.Fails"
# kind = "function"
#
# [[passes]]
# pass = "acme.Ends"
# kind = "module"
#
# [[passes]]
# pass = "acme.Waits"
# kind = "module"
# ///
import os
import time

import tenon


def keep_main(module, context, *, others):
    print("what a pass prints is no answer")
    return module.without(*[name for name in module if name not in ("main", *others)])


@tenon.function_pass(opt_level=0, name="acme.Same")
def any_name(function, module, context):
    return function


class Doubled:
    def transform_module(self, module, context):
        folded = tenon.transform.FoldConstant()(module)
        return folded.update({"again": folded["main"]})


def fails(function, module, context):
    raise ZeroDivisionError("by hand")


def ends(module, context):
    os._exit(3)


def waits(module, context):
    time.sleep(60)
'''


class Dropped(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = Path(cls.folder.name)
        (cls.path / "model.ir").write_text(TEXT)
        cls.drop("p/tidy.py", TIDY)
        cls.registry = cls.write("registry.toml", """
            [passes."acme.KeepMain"]
            enabled = true
            options = { others = ["helper"] }
            [passes."acme.Waits"]
            time_limit = 1
        """)
        cls.session = tenon.Session([cls.registry])

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def write(cls, name, rest=""):
        path = cls.path / name
        path.write_text(f'schema = 1\n[[plugins.dir]]\npath = "p"\n{rest}\n')
        return path

    @classmethod
    def drop(cls, name, text):
        path = cls.path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    def run_pass(self, text):
        module = tenon.read(self.path / "model.ir", session=self.session)
        return tenon.Sequential([text])(module)

    def tenon(self, *words, registry=None, **environment):
        """What the program prints, and what it complains of."""
        command = [PROGRAM, "--registry", registry or self.registry, *words]
        environment = {**os.environ, "TENON_PYTHON": sys.executable, **environment}
        done = subprocess.run(command, cwd=self.path, env=environment, capture_output=True, text=True)
        return done.stdout, done.stderr

    def test_a_pass_runs_in_a_session(self):
        made = self.run_pass("acme.KeepMain")
        self.assertEqual(made.names(), ["main", "helper"])
        # Its process is the same one, although every run is on a thread of its own.
        self.assertEqual(self.run_pass("acme.KeepMain{others=[]}").names(), ["main"])
        self.assertEqual(self.run_pass("acme.Same"), tenon.parse(TEXT))
        # A pass may run others.
        self.assertEqual(self.run_pass("acme.Doubled").names(), ["main", "helper", "left", "again"])
        info = next(each for each in self.session.passes() if each["pass"]["pass"] == "acme.KeepMain")
        self.assertEqual((info["plugin"], info["version"], info["enabled"]), ("acme.tidy", "1.2.0", True))

    def test_it_has_a_place_and_a_time_in_the_pipeline(self):
        plan = self.session.plan()
        self.assertIn(["relax.FoldConstant", "acme.KeepMain"], [plan[at : at + 2] for at in range(len(plan))])
        timing = tenon.instrument.PassTimingInstrument()
        with tenon.PassContext(opt_level=3, instruments=[timing]):
            compiled = tenon.compile(self.path / "model.ir", threads=1, session=self.session)
        self.assertIn("acme.KeepMain", timing.render())
        self.assertEqual(compiled.inputs[0].shape, (4,))

    def test_the_program_runs_it(self):
        printed, told = self.tenon("opt", "model.ir", "--pipeline", "acme.KeepMain")
        self.assertEqual(printed.strip(), TEXT[: TEXT.index("fn @left")].strip())
        self.assertIn("what a pass prints is no answer", told)
        printed, told = self.tenon("compile", "model.ir", "-o", "model.so")
        self.assertTrue((self.path / "model.so").exists(), told)

    def test_an_exception_is_an_error_with_its_traceback(self):
        with self.assertRaises(tenon.PassError) as told:
            self.run_pass("acme.Fails")
        for part in ("`acme.Fails` in function @main", "tidy.py", "in fails", "ZeroDivisionError: by hand"):
            self.assertIn(part, str(told.exception))

    def test_whatever_it_does_to_its_process_is_an_error(self):
        with self.assertRaisesRegex(tenon.PassError, "ended the process"):
            self.run_pass("acme.Ends")
        with self.assertRaisesRegex(tenon.PassError, "time limit of 1 s"):
            self.run_pass("acme.Waits")
        self.assertEqual(self.run_pass("acme.KeepMain{others=[]}").names(), ["main"])

    def test_what_is_missing_is_named(self):
        run = ("opt", "model.ir", "--pipeline", "acme.KeepMain")
        _, told = self.tenon(*run, TENON_PYTHON="/nowhere/python")
        self.assertIn("TENON_PYTHON names /nowhere/python, which is no absolute path of a program", told)
        _, told = self.tenon(*run, TENON_PYTHON="python9")
        self.assertIn("there is no `python9`, which TENON_PYTHON names, in a folder of PATH", told)
        _, told = self.tenon(*run, PYTHONPATH="", PYTHONNOUSERSITE="1")
        self.assertIn("cannot import the package `tenon`", told)
        _, told = self.tenon(*run, TENON_PYTHON="./python")
        self.assertIn("TENON_PYTHON names ./python, which is no absolute path", told)
        (self.path / "linked").symlink_to(sys.executable)
        relative = self.write("relative.toml", '[interpreters]\npy = "./linked"')
        printed, told = self.tenon(*run, registry=relative, TENON_PYTHON="/nowhere/python")
        self.assertIn("fn @main", printed, told)
        named = self.write("named.toml", '[interpreters]\npy = "python8"')
        _, told = self.tenon(*run, registry=named)
        self.assertIn("there is no `python8`, which the registry's interpreters.py names", told)

    def test_what_a_file_lists_it_must_define(self):
        block = "# /// tenon\n# [[passes]]\n# pass = 'acme.{name}'\n# kind = '{kind}'\n# ///\n"
        cases = {
            "Absent": ("module", "", "defines no function or class `absent` or `Absent`"),
            "Broken": ("module", "def broken(:", "SyntaxError"),
            "Raises": ("module", "raise RuntimeError('at the top')", "RuntimeError: at the top"),
            "Kind": (
                "function",
                "import tenon\n@tenon.module_pass(opt_level=0, name='acme.Kind')\ndef f(m, c): return m",
                "is of the kind function, and it is one of module",
            ),
            "Returns": ("module", "def returns(module, context): return 3", "a Module is expected"),
        }
        for name, (kind, text, told) in cases.items():
            self.drop(f"q/{name.lower()}.py", block.format(name=name, kind=kind) + text)
        registry = self.path / "q.toml"
        registry.write_text('schema = 1\n[[plugins.dir]]\npath = "q"\n')
        session = tenon.Session([registry])
        for name, (_, _, told) in cases.items():
            with self.subTest(name), self.assertRaisesRegex(tenon.Error, told):
                module = tenon.parse(TEXT, session=session)
                tenon.Sequential([f"acme.{name}"])(module)

    def test_another_file_than_the_pinned_one_is_refused(self):
        registry = self.write("pinned.toml", '[plugins.pin."acme.tidy"]\nsha256 = "' + "0" * 64 + '"')
        _, told = self.tenon("opt", "model.ir", "--pipeline", "acme.KeepMain", registry=registry)
        self.assertIn("its SHA-256 digest is", told)

    def test_the_conformance_kit_tries_it(self):
        self.drop("k/kit.py", "# /// tenon\n# [[passes]]\n# pass = 'acme.Kit'\n# kind = 'function'\n# idempotent = true\n"
                  "# ///\ndef kit(function, module, context): return function\n")  # fmt: skip
        printed, told = self.tenon("plugins", "test", "k/kit.py", "--modules", "2")
        self.assertIn("0 failed", printed, told)


if __name__ == "__main__":
    unittest.main()
