"""Tuning and compiling on a Ray cluster of several nodes on this machine, of which some are killed and some hang."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

import numpy as np

import tenon

try:
    import ray
    from ray.cluster_utils import Cluster
except ImportError:
    ray = None

MODEL = """fn @main(%x: f32[32, 48], %w: f32[48, 64]) {
  %p = matmul(%x, %w)
  %y = nn.relu(%p)
  %z = nn.softmax(%y)
  ret %z
}
"""


# Products of so many sizes that no processor has fewer than 24 schedules for them.
PRODUCTS = """fn @main(%x: f32[64, 96], %v: f32[96, 128], %w: f32[128, 192]) {
  %p = matmul(%x, %v)
  %y = nn.relu(%p)
  %z = matmul(%y, %w)
  ret %z
}
"""


class Tuning(unittest.TestCase):
    """On this machine alone."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.db = self.folder / "tuned.jsonl"

    def test_tune(self):
        found = tenon.tune(MODEL, db=self.db, trials=6, threads=1)
        self.assertEqual(2, len(found.tasks))
        self.assertGreaterEqual(sum(task.tried for task in found.tasks), 6)
        self.assertGreater(found.default_ms, 0.0)
        self.assertLessEqual(found.best_ms, found.default_ms)
        self.assertIn("matmul", str(found))
        lines = [json.loads(line) for line in self.db.read_text().splitlines()]
        self.assertEqual(sum(task.tried for task in found.tasks), len(lines))
        # What was found computes the same.
        inputs = [np.full((32, 48), 0.5, np.float32), np.ones((48, 64), np.float32)]
        tuned = tenon.compile(MODEL, tune_db=self.db, threads=1)(*inputs)
        np.testing.assert_allclose(tuned, tenon.compile(MODEL, threads=1)(*inputs), rtol=1e-5)

    def test_errors(self):
        with self.assertRaisesRegex(tenon.Error, "known by no-such-key"):
            tenon.tune(MODEL, db=self.db, only=["no-such-key"])
        with self.assertRaisesRegex(tenon.Error, "cannot be opened"):
            tenon.tune(MODEL, db=self.folder / "no" / "such.jsonl", trials=1)
        with self.assertRaisesRegex(tenon.PassError, "cannot be read"):
            tenon.compile(MODEL, tune_db=self.folder / "none.jsonl")

    def test_ctrl_c(self):
        def interrupt():
            while not (self.db.exists() and self.db.read_text()):
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with self.assertRaises(KeyboardInterrupt):
            tenon.tune(MODEL, db=self.db, threads=1)
        thread.join()
        self.assertTrue(self.db.read_text().endswith("\n"))


def children(name):
    """The processes on this machine whose command has a word."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if any(name in word for word in words):
                found.append(int(folder.name))
    return found


@unittest.skipIf(ray is None, "ray is not installed")
class OnACluster(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # Workers find the package where this process does.
        os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
        cls.cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
        for _ in range(2):
            cls.cluster.add_node(num_cpus=1, object_store_memory=80 << 20)
        ray.init(address=cls.cluster.address, log_to_driver=False)

    @classmethod
    def tearDownClass(cls):
        ray.shutdown()
        cls.cluster.shutdown()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.db = self.folder / "tuned.jsonl"

    def lines(self):
        return [json.loads(line) for line in self.db.read_text().splitlines()]

    def test_killed_and_hanging_workers_lose_nothing(self):
        done = threading.Event()
        hurt = []

        def harm():
            # One process that measures is stopped, so that it says nothing any more; the worker of another is killed.
            for what in (signal.SIGSTOP, signal.SIGKILL):
                while not done.is_set():
                    workers = [id for id in children(b"ray::_measure") if id not in hurt]
                    if workers and self.db.exists() and self.db.read_text():
                        hurt.append(workers[0])
                        os.kill(workers[0], what)
                        break
                    time.sleep(0.05)

        thread = threading.Thread(target=harm)
        thread.start()
        try:
            found = tenon.cluster.tune(
                tenon.parse(PRODUCTS), self.db, time=60, trials=24, slice=3, patience=6
            )
        finally:
            done.set()
            thread.join()
        self.assertEqual(2, len(hurt))
        lines = self.lines()
        self.assertGreaterEqual(len(lines), 24)
        self.assertEqual(len(lines), sum(task.tried for task in found.tasks))
        once = {(line["program"], line["schedule"], line["found"]) for line in lines}
        self.assertEqual(len(lines), len(once), "nothing is counted twice")
        # Another driver goes on from there.
        again = tenon.tune(PRODUCTS, db=self.db, ray="auto", trials=4)
        self.assertEqual(len(self.lines()) - len(lines), sum(task.tried for task in again.tasks))

    def test_a_farm_compiles_many(self):
        models = {f"model{size}": tenon.parse(MODEL.replace("[32,", f"[{size},")) for size in (8, 16)}
        made = tenon.cluster.compile_all(models, self.folder)
        for name, size in (("model8", 8), ("model16", 16)):
            run = tenon.load(made[name])
            x, w = np.ones((size, 48), np.float32), np.ones((48, 64), np.float32)
            np.testing.assert_allclose(np.full((size, 64), 1 / 64), run(x, w), rtol=1e-5)
        # What does not compile is an error of its own.
        made = tenon.cluster.compile_all({"none": models["model8"]}, self.folder, target="no-such-cpu")
        self.assertIsInstance(made["none"], tenon.Error)

    def test_from_the_command_line(self):
        model = self.folder / "model.ir"
        model.write_text(MODEL)
        program = Path(tenon.__file__).parent / "bin" / "tenon"
        command = [program, "tune", model, "--db", self.db, "--ray", self.cluster.address]
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        ran = subprocess.run(
            [*command, "--trials", "2"], capture_output=True, text=True, env={**os.environ, "PATH": path}
        )
        self.assertEqual(0, ran.returncode, ran.stderr)
        self.assertIn("matmul", ran.stdout)
        self.assertGreaterEqual(len(self.lines()), 2)


if __name__ == "__main__":
    unittest.main()
