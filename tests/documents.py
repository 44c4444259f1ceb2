"""The documents, their code, and a process of its own for each block of it.

The processes are forked from one that has imported what takes seconds to import, and nothing else:
a block sees no names, files or settings of another.
"""

import multiprocessing
import os
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

from running import Run

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
PYTHON = re.compile(r"```python\n(.*?)```\n(?:```text\n(.*?)```)?", re.DOTALL)
# Not JAX and Polars: what they begin when they are imported does not survive a fork.
SLOW_TO_IMPORT = ["documents", "matplotlib.pyplot", "mpltern", "pandas", "scipy.stats", "torch"]
SLOW_TO_IMPORT += ["sklearn.datasets", "transformers.trainer", "slencodings.torch"]
SLOW_TO_IMPORT += ["slencodings.datasets", "slencodings.evaluation", "slencodings.report"]


def _run_in_this_process(code: str, folder: str, out: str, err: str) -> None:
    for place, number in ((out, 1), (err, 2)):
        with open(place, "wb") as file:
            os.dup2(file.fileno(), number)
    os.chdir(folder)
    # What is pickled is looked for in the main module.
    main = sys.modules["__main__"] = ModuleType("__main__")
    exec(compile(code, "<document>", "exec"), vars(main))


def run_block(code: str) -> Run:
    """Run the code in an empty folder and a process of its own, with nothing but its own names."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(SLOW_TO_IMPORT)
    with TemporaryDirectory() as folder, TemporaryDirectory() as said:
        out, err = Path(said, "out"), Path(said, "err")
        process = context.Process(
            target=_run_in_this_process, args=(code, folder, str(out), str(err))
        )
        process.start()
        process.join()
        assert process.exitcode is not None
        return Run(process.exitcode, out.read_text(), err.read_text())
