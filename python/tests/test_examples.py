"""The examples of docs/python.md, one after the other, as a reader would try them."""

import os
import re
import tempfile
import unittest
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "python.md"


class Examples(unittest.TestCase):
    def test_the_page(self):
        blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
        self.assertGreater(len(blocks), 6)
        names = {"__name__": "page"}
        before = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                for number, block in enumerate(blocks):
                    with self.subTest(block):
                        exec(compile(block, f"{PAGE.name} block {number}", "exec"), names)
            finally:
                os.chdir(before)


if __name__ == "__main__":
    unittest.main()
