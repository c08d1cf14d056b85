"""Runs the tests without pytest: `python tests/run.py`. The first argument selects libraries by their names.

Do not set `GPU_PRIMITIVES_DEVICE=cpu`: it forbids GPUs, so the tests of arrays on a GPU fail.
"""

import importlib
import inspect
import pathlib
import sys
import tempfile
import time
import traceback
import unittest

here = pathlib.Path(__file__).parent
sys.path.insert(0, str(here))

from support import libraries  # noqa: E402


def main():
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    passed, skipped, failed, start = 0, 0, [], time.time()
    print(f"libraries: {', '.join(xp.name for xp in libraries())}", flush=True)
    for path in sorted(here.glob("test_*.py")):
        module = importlib.import_module(path.stem)
        for name, test in vars(module).items():
            if not name.startswith("test_"):
                continue
            parameters = inspect.signature(test).parameters
            for xp in libraries() if "xp" in parameters else [None]:
                if xp is not None and wanted not in xp.name:
                    continue
                arguments = {}
                with tempfile.TemporaryDirectory() as folder:
                    if "xp" in parameters:
                        arguments["xp"] = xp
                    if "tmp_path" in parameters:
                        arguments["tmp_path"] = pathlib.Path(folder)
                    label, began = f"{path.stem}.{name}[{xp.name if xp else ''}]", time.time()
                    try:
                        if xp is None:
                            test(**arguments)
                        else:
                            with xp.stream():
                                test(**arguments)
                        passed += 1
                        print(f"passed {label} in {time.time() - began:.2f} s", flush=True)
                    except unittest.SkipTest as reason:
                        skipped += 1
                        print(f"skipped {label}: {reason}", flush=True)
                    except Exception:
                        failed.append(label)
                        print(f"FAILED {failed[-1]}\n{traceback.format_exc()}", flush=True)
    names = [xp.name for xp in libraries()]
    print(f"{passed} passed, {skipped} skipped, {len(failed)} failed, in {time.time() - start:.1f} s, with {names}")
    for name in failed:
        print("FAILED", name)
    sys.exit(bool(failed))


main()
