# SPDX-License-Identifier: Apache-2.0
"""What the tests of programs in tools/ share: loading one, and saying as TAP what held."""
import importlib.util
import os

TOOLS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools")


def load(file):
    """The program tools/FILE as a module, not run."""
    spec = importlib.util.spec_from_file_location(file.replace("-", "_").removesuffix(".py"), os.path.join(TOOLS, file))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def report(results):
    """Prints [(what, whether it held)]; whether one did not, for sys.exit()."""
    for number, (what, held) in enumerate(results, 1):
        print("ok" if held else "not ok", number, "-", what)
    print(f"1..{len(results)}")
    return not all(held for _, held in results)
