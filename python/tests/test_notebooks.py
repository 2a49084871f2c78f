"""The notebooks, cell by cell, as a reader would run them. They are kept without results."""

import json
import os
import tempfile
import unittest
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"


def run(path):
    """Runs the cells of a notebook, one after the other."""
    names = {"__name__": path.stem}
    for number, cell in enumerate(json.loads(path.read_text())["cells"]):
        if cell["cell_type"] == "code":
            where = f"{path.name} cell {number}"
            exec(compile("".join(cell["source"]), where, "exec"), names)


class Notebooks(unittest.TestCase):
    def test_each_runs(self):
        paths = sorted(FOLDER.glob("*.ipynb"))
        self.assertEqual(len(paths), 4)
        before = os.getcwd()
        for path in paths:
            with self.subTest(path.name), tempfile.TemporaryDirectory() as folder:
                os.chdir(folder)
                try:
                    run(path)
                finally:
                    os.chdir(before)

    def test_each_is_a_notebook_without_results(self):
        for path in sorted(FOLDER.glob("*.ipynb")):
            made = json.loads(path.read_text())
            self.assertEqual((made["nbformat"], path.name), (4, path.name))
            self.assertEqual(len({cell["id"] for cell in made["cells"]}), len(made["cells"]))
            for cell in made["cells"]:
                self.assertIn(cell["cell_type"], ("markdown", "code"))
                if cell["cell_type"] == "code":
                    self.assertEqual((cell["outputs"], cell["execution_count"]), ([], None), path.name)


if __name__ == "__main__":
    unittest.main()
