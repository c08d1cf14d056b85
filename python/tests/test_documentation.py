"""The examples of the documentation."""

import doctest
import pathlib

import gpu_primitives
from gpu_primitives import _dictionaries, _functions


def test_docstrings():
    for module in (_functions, _dictionaries):
        found = doctest.testmod(module)
        assert found.attempted > 10 and found.failed == 0, module


def test_pages():
    folder = pathlib.Path(__file__).parents[1]
    for page in (folder / "README.md", folder.parent / "docs" / "python.md"):
        if not page.exists():
            continue
        found = doctest.testfile(str(page), module_relative=False)
        assert found.failed == 0, page


def test_everything_public_is_documented():
    for name in gpu_primitives.__all__:
        assert getattr(gpu_primitives, name).__doc__, name
