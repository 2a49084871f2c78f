"""Models in, arrays in and out."""

import ctypes
import gc
import json
import pickle
import signal
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

import tenon

MODELS = Path(__file__).parents[2] / "tests/models"
DOUBLE = "fn @main(%x: f32[n, 3]) -> f32[n, 3] {\n  %y = add(%x, %x)\n  ret %y\n}\n"


def typed(dtype):
    return f"fn @main(%x: {dtype}[4]) -> {dtype}[4] {{\n  %y = add(%x, %x)\n  ret %y\n}}\n"


def perceptron():
    """An ONNX model of two products with open batch, and weights."""
    rng = np.random.default_rng(1)
    weights = [rng.normal(size=size).astype(np.float32) for size in [(8, 16), (16, 4)]]
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w0"], ["a"]),
            helper.make_node("Relu", ["a"], ["b"]),
            helper.make_node("MatMul", ["b", "w1"], ["y"]),
        ],
        "perceptron",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4])],
        [onnx.numpy_helper.from_array(it, f"w{at}") for at, it in enumerate(weights)],
    )
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8)


class Capsule:
    """Anything with `__dlpack__`, and nothing else; the form before DLPack 1.0 if it is old."""

    def __init__(self, array, is_old=False):
        self.array, self.is_old = array, is_old

    def __dlpack__(self, **asked):
        if self.is_old and asked:
            raise TypeError("unexpected keyword")
        return self.array.__dlpack__(**asked)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Models(unittest.TestCase):
    def test_onnx_in_memory_in_a_file_and_as_bytes_equals_onnx_runtime(self):
        model = perceptron()
        reference = onnxruntime.InferenceSession(model.SerializeToString())
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "perceptron.onnx"
            onnx.save(model, path)
            for given in (model, model.SerializeToString(), path, str(path)):
                compiled = tenon.compile(given, threads=1)
                for batch in (1, 5, 0):
                    x = np.random.default_rng(batch).normal(size=(batch, 8)).astype(np.float32)
                    (expected,) = reference.run(None, {"x": x})
                    np.testing.assert_allclose(compiled(x), expected, rtol=1e-5, atol=1e-5)
                    np.testing.assert_allclose(compiled(x=x), expected, rtol=1e-5, atol=1e-5)

    def test_open_dimensions_are_bound(self):
        compiled = tenon.compile(perceptron(), dims={"batch": 3})
        self.assertEqual(compiled.inputs, [tenon.TensorSpec("x", "f32", (3, 8))])
        with self.assertRaisesRegex(tenon.RunError, r"input `x`: f32\[3, 8\] is expected, but f32\[2, 8\]"):
            compiled(np.zeros((2, 8), np.float32))
        with self.assertRaisesRegex(TypeError, "dims are for ONNX"):
            tenon.compile(DOUBLE, dims={"n": 3})

    def test_functions_are_chosen_by_name(self):
        text = DOUBLE.replace("main", "up") + DOUBLE.replace("main", "down").replace("add", "multiply")
        x = np.full((1, 3), 5, np.float32)
        self.assertEqual(tenon.compile(text, function="up")(x)[0, 0], 10)
        self.assertEqual(tenon.compile(text, function="down")(x)[0, 0], 25)
        with self.assertRaisesRegex(tenon.CompileError, "no function `left`; it has `up`, `down`"):
            tenon.compile(text, function="left")

    def test_a_model_has_all_its_functions(self):
        text = DOUBLE.replace("@main", "@double") + DOUBLE.replace("@main", "@twice")
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        compiled = tenon.compile(text)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "both.so"
            compiled.export_library(path)
            loaded = tenon.load(path)
            pickled = pickle.loads(pickle.dumps(loaded))["twice"]
            named = pickle.loads(pickle.dumps(loaded["twice"]))
        for each in (compiled, loaded):
            self.assertEqual(each.functions, ["double", "twice"])
            np.testing.assert_array_equal(each["twice"](x), x + x)
            with self.assertRaisesRegex(KeyError, "no function `half`; the model has `double`"):
                each["half"]
            with self.assertRaisesRegex(TypeError, "no `main`.*one of .*twice"):
                each(x)
        for each in (pickled, named):
            self.assertEqual(each.name, "twice")
            np.testing.assert_array_equal(each(x), x + x)
        self.assertEqual(tenon.compile(DOUBLE + text).name, "main")

    def test_several_results_are_a_tuple(self):
        text = "fn @main(%x: f32[2], %y: i64[]) {\n  %a = negative(%x)\n  ret (%a, %y)\n}\n"
        a, y = tenon.compile(text)(np.array([1, 2], np.float32), 7)
        np.testing.assert_array_equal(a, [-1, -2])
        self.assertEqual(int(y), 7)

    def test_libraries_are_written_and_loaded(self):
        compiled = tenon.compile(DOUBLE)
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "double.so"
            compiled.export_library(path, prefix="twice")
            self.assertIn("twice_call(", (Path(folder) / "double.h").read_text())
            loaded = tenon.load(path, threads=1)
            np.testing.assert_array_equal(loaded(x), x + x)
            self.assertEqual((loaded.threads, loaded.inputs), (1, compiled.inputs))
            with self.assertRaisesRegex(tenon.CompileError, "is a library already"):
                loaded.export_library(Path(folder) / "again.so")
            copied = pickle.loads(pickle.dumps(loaded))
        again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(compiled))))
        for each in (copied, again):
            np.testing.assert_array_equal(each(x), x + x)
        with tempfile.NamedTemporaryFile(suffix=".so") as file:
            file.write(b"no library")
            file.flush()
            with self.assertRaises(tenon.RunError):
                tenon.load(file.name)

    def test_a_benchmark_measures(self):
        result = tenon.compile(DOUBLE).benchmark(np.zeros((64, 3), np.float32), number=3, repeat=4)
        self.assertEqual(len(result.seconds), 4)
        self.assertTrue(0 < result.min <= result.median <= result.max < 1)
        self.assertIn("median", str(result))

    def test_what_is_wrong_is_told_with_its_place(self):
        with self.assertRaises(tenon.ModelError) as told:
            tenon.parse("fn @main(%x: f32[4]) {\n  %y = exq(%x)\n  ret %y\n}\n", "net.ir")
        self.assertIn("--> net.ir:2", str(told.exception))
        self.assertEqual(told.exception.diagnostics[0]["severity"], "error")
        with self.assertRaises(tenon.ModelError):
            tenon.compile(b"no model")
        with self.assertRaises(tenon.ModelError):
            tenon.compile("no-such-file.onnx")
        with self.assertRaisesRegex(TypeError, "not int"):
            tenon.compile(3)
        with self.assertRaises(tenon.PipelineError):
            tenon.compile(DOUBLE, pipeline="NoSuchPass")
        with self.assertRaises(tenon.Error):
            tenon.compile(DOUBLE, target="no-such-target")

    def test_arguments_that_do_not_fit(self):
        compiled = tenon.compile(DOUBLE)
        x = np.zeros((2, 3), np.float32)
        for arguments, named, told in [
            ([], {}, "has 1 inputs"),
            ([x, x], {}, "has 1 inputs"),
            ([], {"z": x}, "no input `z`; the model has `x`"),
            ([x], {"x": x}, "given twice"),
            ([x.astype(np.float64)], {}, r"`x`: f32\[n, 3\] is expected, but f64"),
            ([x.astype(">f4")], {}, "other byte order"),
            ([np.array(["a"])], {}, "cannot be given"),
            ([[1, 2]], {}, "neither an array"),
            ([None], {}, "neither an array"),
        ]:
            with self.subTest(told), self.assertRaisesRegex((tenon.RunError, TypeError), told):
                compiled(*arguments, **named)


class Arrays(unittest.TestCase):
    def test_types(self):
        for name, dtype in {
            "f16": np.float16, "f32": np.float32, "f64": np.float64,
            "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
            "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
        }.items():
            with self.subTest(name):
                x = np.array([0, 1, 2, 100], dtype)
                result = tenon.compile(typed(name), threads=1)(x)
                self.assertEqual(result.dtype, dtype)
                np.testing.assert_array_equal(result, x + x)
        truth = tenon.compile("fn @main(%x: bool[3]) {\n  %y = logical_not(%x)\n  ret %y\n}\n")
        result = truth(np.array([True, False, True]))
        self.assertEqual((result.dtype, result.tolist()), (np.bool_, [False, True, False]))

    def test_bfloat16_goes_in_and_comes_out(self):
        try:
            import ml_dtypes
        except ImportError:
            self.skipTest("ml_dtypes is missing")
        x = np.array([1, 2.5, -3, 1e30], ml_dtypes.bfloat16)
        result = tenon.compile(typed("bf16"))(x)
        self.assertEqual(result.dtype, ml_dtypes.bfloat16)
        np.testing.assert_array_equal(result, x + x)

    def test_arrays_are_read_where_they_lie_if_they_can_be(self):
        compiled = tenon.compile(DOUBLE, threads=1)
        base = np.arange(48, dtype=np.float32)
        dense = base[:12].reshape(4, 3)
        unaligned = np.frombuffer(b"\0" + dense.tobytes(), np.uint8)[1:].view(np.float32)
        read_only = dense.copy()
        read_only.flags.writeable = False
        for given, copies in [
            (dense, 0),
            (read_only, 0),
            (dense[1:3], 0),
            (dense[:0], 0),
            (dense[:1, ::1], 0),
            (dense[::2], 1),
            (dense[::-1], 1),
            (base.reshape(3, 16).T[:4], 1),
            (np.broadcast_to(base[:3], (4, 3)), 1),
            (np.asfortranarray(dense), 1),
            (unaligned.reshape(4, 3), 1),
        ]:
            before = compiled.copied_inputs
            np.testing.assert_array_equal(compiled(given), given + given)
            self.assertEqual(compiled.copied_inputs - before, copies, given.strides)

    def test_whatever_knows_dlpack_is_taken(self):
        compiled = tenon.compile(DOUBLE, threads=1)
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        for is_old in (False, True):
            result = compiled(Capsule(x, is_old))
            self.assertIsInstance(result, tenon.Array)
            self.assertEqual((result.shape, result.dtype), ((2, 3), "f32"))
            np.testing.assert_array_equal(np.from_dlpack(result), x + x)
            np.testing.assert_array_equal(compiled(Capsule(x[:, ::-1], is_old)).__array_interface__["shape"], (2, 3))
            strided = np.from_dlpack(compiled(Capsule(x[:, ::-1], is_old)))
            np.testing.assert_array_equal(strided, 2 * x[:, ::-1])

    def test_arrays_that_say_nonsense_of_themselves_are_errors(self):
        compiled = tenon.compile(DOUBLE, threads=1)
        x = np.ones((2, 3), np.float32)

        class Said:
            def __init__(self, **said):
                self.__array_interface__ = {**x.__array_interface__, **said}

        for said, text in ({"strides": (4,)}, "2 axes and strides of 1"), ({"typestr": "zz"}, "elements \"zz\""):
            with self.assertRaisesRegex((BufferError, TypeError), text):
                compiled(Said(**said))
        with self.assertRaisesRegex(OSError, "a pool has at most 4096"):
            tenon.compile(DOUBLE, threads=10**10)

    def test_results_are_used_where_they_lie_and_outlive_the_model(self):
        compiled = tenon.compile(DOUBLE)
        x = np.ones((2, 3), np.float32)
        array = compiled(Capsule(x))
        place = array.__array_interface__["data"][0]
        for view in (np.asarray(array), np.from_dlpack(array)):
            self.assertEqual(view.__array_interface__["data"][0], place)
        del compiled, array
        gc.collect()
        np.testing.assert_array_equal(view, x + x)
        self.assertEqual(place % 64, 0)

    def test_a_capsule_that_nobody_takes_is_given_back(self):
        array = tenon.compile(DOUBLE)(Capsule(np.ones((1, 3), np.float32)))
        before = sys.getrefcount(array)
        for version in (None, (1, 0), (2, 0)):
            del_me = array.__dlpack__(max_version=version)
            self.assertEqual(sys.getrefcount(array), before + 1)
            del del_me
            self.assertEqual(sys.getrefcount(array), before)
        self.assertEqual(array.__dlpack_device__(), (1, 0))
        with self.assertRaises(BufferError):
            array.__dlpack__(copy=True)

    def test_a_thousand_calls_keep_nothing(self):
        compiled = tenon.compile(DOUBLE, threads=1)
        x = np.ones((2, 3), np.float32)
        capsule = Capsule(x)
        before = sys.getrefcount(x)
        for _ in range(1000):
            compiled(x)
            compiled(capsule)
        gc.collect()
        self.assertEqual(sys.getrefcount(x), before)

    def test_a_tensor_elsewhere_is_refused(self):
        class Elsewhere(Capsule):
            """A capsule whose tensor says that it lies on a device."""

            def __dlpack__(self, **asked):
                capsule = self.array.__dlpack__()
                pointer = ctypes.pythonapi.PyCapsule_GetPointer
                pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
                at = pointer(capsule, b"dltensor")
                ctypes.c_int32.from_address(at + 8).value = 2
                return capsule

        with self.assertRaisesRegex(BufferError, "device 2:0"):
            tenon.compile(DOUBLE)(Elsewhere(np.ones((1, 3), np.float32)))


class Threads(unittest.TestCase):
    def test_threads_share_a_model(self):
        compiled = tenon.compile(DOUBLE)
        wrong = []

        def work(seed):
            rng = np.random.default_rng(seed)
            for _ in range(50):
                x = rng.normal(size=(int(rng.integers(1, 9)), 3)).astype(np.float32)
                if not np.array_equal(compiled(x), x + x):
                    wrong.append(x)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
        [it.start() for it in threads]
        [it.join() for it in threads]
        self.assertEqual(wrong, [])

    def test_others_run_while_a_model_is_compiled(self):
        counted = 0
        done = threading.Event()

        def count():
            nonlocal counted
            while not done.is_set():
                counted += 1
                time.sleep(0.001)

        counter = threading.Thread(target=count)
        counter.start()
        start = time.perf_counter()
        tenon.compile(perceptron(), threads=1)
        seconds = time.perf_counter() - start
        done.set()
        counter.join()
        self.assertGreater(counted, seconds / 0.05)

    def test_a_signal_stops_the_passes(self):
        @tenon.module_pass(opt_level=0)
        def slow(module, context):
            time.sleep(0.2)
            return module

        class Interrupted(Exception):
            pass

        def interrupt(*_):
            raise Interrupted

        old = signal.signal(signal.SIGALRM, interrupt)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            start = time.perf_counter()
            with self.assertRaises(Interrupted):
                tenon.Sequential([slow] * 100)(tenon.parse(DOUBLE))
            self.assertLess(time.perf_counter() - start, 5)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, old)


class Options(unittest.TestCase):
    TEXT = """fn @main(%x: f32[32, 64], %w: f32[64, 16]) {
  %p = matmul(%x, %w)
  %y = nn.softmax(%p)
  ret %y
}
"""

    def setUp(self):
        numbers = np.random.default_rng(0)
        self.given = [numbers.standard_normal(shape).astype(np.float32) for shape in ((32, 64), (64, 16))]

    def test_precision_is_chosen(self):
        exact = tenon.compile(self.TEXT, threads=1)(*self.given)
        for precision in ("bf16", "f16"):
            narrow = tenon.compile(self.TEXT, precision=precision, threads=1)(*self.given)
            self.assertEqual(narrow.dtype, np.float32)
            np.testing.assert_allclose(narrow, exact, atol=0.05)
            self.assertTrue((narrow != exact).any(), "nothing was computed in fewer bits")
        with self.assertRaisesRegex(tenon.PipelineError, "f8"):
            tenon.compile(self.TEXT, precision="f8")

    def test_weights_are_stored_in_fewer_bits(self):
        # Multiples of a half up to 3.5, which four bits hold.
        weights = ((np.arange(128 * 128) * 7 % 15 - 7) * 0.5).reshape(128, 128).astype(np.float32)
        builder = tenon.FunctionBuilder()
        product = builder.param("x", "f32[n, 128]") @ builder.constant(weights)
        module = builder.module.update({"main": builder.finish(product)})
        whole, stored = (tenon.compile(module, weights=width, threads=1) for width in (None, "int4:32"))
        self.assertLess(len(pickle.dumps(stored)) + 50_000, len(pickle.dumps(whole)))
        given = np.arange(256, dtype=np.float32).reshape(2, 128)
        np.testing.assert_array_equal(stored(given), whole(given))

    def test_a_cache_keeps_what_was_compiled(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            (folder / "cache").mkdir()
            onnx.save(perceptron(), folder / "model.onnx")
            x = np.ones((2, 8), np.float32)
            expected = tenon.compile(folder / "model.onnx")(x)
            cached = {"cache": folder / "cache", "threads": 1}
            for _ in range(2):
                run = tenon.compile(folder / "model.onnx", **cached)
                np.testing.assert_allclose(run(x), expected, rtol=1e-6)
            kept = sorted((folder / "cache").rglob("*"))
            # A module in memory is kept as well, and what was kept first is still there.
            for _ in range(2):
                double = tenon.compile(DOUBLE, **cached)
                self.assertEqual([[2, 4, 6]], double(np.array([[1, 2, 3]], np.float32)).tolist())
            both = sorted((folder / "cache").rglob("*"))
            self.assertLess(len(kept), len(both))
            self.assertLessEqual(set(kept), set(both))
            again = pickle.loads(pickle.dumps(double))
            with self.assertRaisesRegex(tenon.CompileError, "without `cache`"):
                double.export_library(folder / "double.so")
            del double
            self.assertEqual([[4, 4, 4]], again(np.full((1, 3), 2, np.float32)).tolist())
            with self.assertRaisesRegex(TypeError, "a cache keeps nothing"):
                tenon.compile(DOUBLE, profile=True, **cached)
            with self.assertRaisesRegex(tenon.Error, "none.onnx"):
                tenon.compile(folder / "none.onnx", **cached)

    def test_ranges_of_open_dimensions_are_kept(self):
        ranged = tenon.compile(DOUBLE, dims={"n": (1, 4)})
        self.assertEqual(ranged(np.ones((4, 3), np.float32)).shape, (4, 3))
        with self.assertRaisesRegex(tenon.RunError, "`n` is 5 .*compiled for 1 to 4"):
            ranged(np.ones((5, 3), np.float32))
        with tempfile.TemporaryDirectory() as folder:
            onnx.save(perceptron(), Path(folder) / "model.onnx")
            open_end = tenon.compile(Path(folder) / "model.onnx", dims={"batch": (2, None)})
        with self.assertRaisesRegex(tenon.RunError, "`batch` is 1 .*compiled for 2 or more"):
            open_end(np.ones((1, 8), np.float32))
        for wrong in [(4, 1), (-1, 2), (1, 2, 3)]:
            with self.assertRaisesRegex(ValueError, "a range is"):
                tenon.compile(DOUBLE, dims={"n": wrong})
        with self.assertRaisesRegex(tenon.CompileError, "`rows`"):
            tenon.compile(DOUBLE, dims={"rows": (1, 4)})

    def test_weights_lie_in_a_file(self):
        rows = ", ".join(map(str, range(4096)))
        text = f"fn @main(%x: f32[4096]) {{\n  %y = add(%x, const(f32[4096], [{rows}]))\n  ret %y\n}}\n"
        compiled, x = tenon.compile(text), np.zeros(4096, np.float32)
        with tempfile.TemporaryDirectory() as folder:
            path, weights = Path(folder) / "m.so", Path(folder) / "m.weights"
            compiled.export_library(path, weights_file=True)
            self.assertEqual(weights.stat().st_size, 4096 + 4 * 4096)
            loaded = tenon.load(path)
            pickled = pickle.loads(pickle.dumps(loaded))
            twice = pickle.loads(pickle.dumps(pickled))
            elsewhere = Path(folder) / "elsewhere"
            weights.rename(elsewhere)
            named = Path(folder) / "n.so"
            compiled.export_library(named, weights_file=Path(folder) / "n")
            with self.assertRaisesRegex(tenon.RunError, "is no file of weights"):
                tenon.load(named, weights_file=named)
            self.assertEqual(tenon.load(named)(x)[4095], 4095)
            compiled.export_library(Path(folder) / "m.o", form="object", weights_file=True)
            self.assertTrue(weights.exists())
        for each in (loaded, pickled, twice):
            np.testing.assert_array_equal(each(x), np.arange(4096))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "m.so"
            compiled.export_library(path, weights_file=Path(folder) / "w")
            (Path(folder) / "w").rename(Path(folder) / "v")
            with self.assertRaisesRegex(tenon.RunError, "needs its file of weights: cannot open"):
                tenon.load(path)
            self.assertEqual(tenon.load(path, weights_file=Path(folder) / "v")(x)[7], 7)

    def test_an_executable_is_saved_and_loaded(self):
        text = DOUBLE + DOUBLE.replace("@main", "@twice")
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        with tempfile.TemporaryDirectory() as folder:
            path, library = Path(folder) / "m.exec", Path(folder) / "m.so"
            tenon.compile(text).save(path)
            loaded = tenon.load(path, threads=1)
            self.assertEqual((loaded.functions, loaded.threads), (["main", "twice"], 1))
            np.testing.assert_array_equal(loaded(x), x + x)
            np.testing.assert_array_equal(loaded["twice"](x), x + x)
            loaded.export_library(library, prefix="p", weights_file=True)
            self.assertIn("p_twice_run(", (Path(folder) / "m.h").read_text())
            np.testing.assert_array_equal(tenon.load(library)(x), x + x)
            loaded.save(Path(folder) / "again.exec")
            self.assertEqual((Path(folder) / "again.exec").read_bytes(), path.read_bytes())
            np.testing.assert_array_equal(pickle.loads(pickle.dumps(loaded))(x), x + x)
            with self.assertRaisesRegex(tenon.CompileError, "is a library already"):
                tenon.load(library).save(path)
            with self.assertRaisesRegex(TypeError, "are of libraries"):
                tenon.load(path, processor="x86-64-v2")
            with self.assertRaisesRegex(tenon.CompileError, "takes times of its kernels|no code"):
                tenon.compile(DOUBLE, profile=True).save(path)
            path.chmod(0o666)
            with self.assertRaisesRegex(tenon.CompileError, "everybody can write to"):
                tenon.load(path)
            path.write_bytes(b"something else")
            with self.assertRaisesRegex(tenon.CompileError, "is no executable that Tenon has saved"):
                tenon.load(path)

    def test_a_model_calls_a_function_of_a_library(self):
        text = 'fn @main(%x: f32[n, 3]) -> f32[n, 3] {\n  %y: f32[n, 3] = extern "vendor_run"(%x)\n  ret %y\n}\n'
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        with tempfile.TemporaryDirectory() as folder:
            library = Path(folder) / "vendor.so"
            tenon.compile(DOUBLE).export_library(library)
            np.testing.assert_array_equal(tenon.compile(text, link=[library])(x), 2 * x)
            with self.assertRaisesRegex(tenon.CompileError, "nobody defines `vendor_run`"):
                tenon.compile(text)
            with self.assertRaisesRegex(tenon.CompileError, "missing.o"):
                tenon.compile(text, link=[Path(folder) / "missing.o"])

    def test_a_library_for_several_processors(self):
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        both = tenon.compile(DOUBLE, target="x86-64-v2/native")
        np.testing.assert_array_equal(both(x), x + x)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "both.so"
            both.export_library(path)
            best, other = tenon.load(path), tenon.load(path, processor="x86-64-v2")
            with self.assertRaisesRegex(tenon.RunError, "no code for a processor `z80`"):
                tenon.load(path, processor="z80")
        self.assertNotEqual(best.target, other.target)
        for each in (best, other):
            np.testing.assert_array_equal(each(x), x + x)

    def test_a_flag_stops_calls(self):
        text = "fn @main(%x: f32[n]) -> f32[n] {\n  %y = exp(%x)\n  ret %y\n}\n"
        model, flag, x = tenon.compile(text), tenon.Flag(), np.zeros(3, np.float32)
        self.assertEqual(model.run_until(flag, x).tolist(), [1, 1, 1])
        flag.set()
        self.assertTrue(flag.is_set)
        with self.assertRaisesRegex(tenon.RunError, "cancelled"):
            model.run_until(flag, x)
        flag.clear()
        self.assertEqual(model.run_until(flag, x=x).tolist(), [1, 1, 1])

    def test_a_state_is_updated_in_place(self):
        model = tenon.compile(MODELS / "decoder.onnx", threads=1)
        golden = json.loads((MODELS / "goldens" / "decoder.json").read_text())
        shapes = {spec.name: spec.shape for spec in model.inputs}
        caches = [np.zeros(shapes[name], np.float32) for name, _ in model.in_place]
        state = model.state(*caches)
        self.assertEqual(len(state), len(caches))
        tokens, at, given = [], 0, golden["prompt"]
        while len(tokens) < 20:
            places = np.arange(at, at + len(given))
            logits = model.run_in_place(state, np.array([given]), places=places)
            at, given = at + len(given), [int(logits.reshape(-1, logits.shape[-1])[-1].argmax())]
            tokens += given
        self.assertEqual(tokens, golden["tokens"][:20])
        self.assertTrue(all(array.any() for array in state.arrays()))
        self.assertFalse(any(cache.any() for cache in caches))
        flag = tenon.Flag()
        flag.set()
        with self.assertRaisesRegex(tenon.RunError, "cancelled"):
            model.run_in_place(state, np.array([given]), places, cancelled=flag)
        with self.assertRaisesRegex(tenon.RunError, "is expected, but an array of the shape"):
            model.state(*(cache[..., :1] for cache in caches))

    def test_a_state_becomes_longer(self):
        model = tenon.compile(MODELS / "growing_decoder.onnx", threads=1)
        golden = json.loads((MODELS / "goldens" / "growing_decoder.json").read_text())
        empty = [
            np.zeros([each if isinstance(each, int) else 0 for each in spec.shape], np.float32)
            for spec in model._updated
        ]
        with self.assertRaisesRegex(tenon.RunError, "say for how much there is to be room"):
            model.state(*empty)
        state = model.state(*empty, room=len(golden["prompt"]) + 7)
        tokens, at, given = [], 0, golden["prompt"]
        while len(tokens) < 8:
            places = np.arange(at, at + len(given))
            logits = model.run_in_place(state, np.array([given]), places[None])
            at += len(given)
            given = [int(logits.reshape(-1, logits.shape[-1])[-1].argmax())]
            tokens += given
        self.assertEqual(tokens, golden["tokens"][:8])
        lengths = {array.shape for array in state.arrays()}
        self.assertEqual(lengths, {(1, 2, at, 16)})
        with self.assertRaises(tenon.RunError):
            model.run_in_place(state, np.array([given]), np.array([[at]]))
        self.assertEqual({array.shape for array in state.arrays()}, lengths)
        with self.assertRaisesRegex(tenon.RunError, "updates no input in place"):
            tenon.compile(DOUBLE).state()

    def test_kernels_are_timed(self):
        compiled = tenon.compile(self.TEXT, profile=True, threads=1)
        profile = compiled.profile(*self.given, number=3)
        self.assertEqual([each.came_from for each in profile.kernels], ["<text>:2", "<text>:3"])
        self.assertTrue(all(each.ms > 0 for each in profile.kernels))
        self.assertAlmostEqual(profile.ms, sum(each.ms for each in profile.kernels))
        table = str(profile).splitlines()
        self.assertEqual((len(table), table[0].split()), (3, ["ms", "%", "kernel", "from"]))
        self.assertIn("<td>&lt;text&gt;:2</td>", profile._repr_html_())
        with self.assertRaisesRegex(tenon.RunError, "profile=True"):
            tenon.compile(self.TEXT, threads=1).profile(*self.given)


if __name__ == "__main__":
    unittest.main()
