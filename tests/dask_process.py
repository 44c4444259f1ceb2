"""What a process of Dask's command line runs, so that one that is forked can run it too."""

import os
import sys
from typing import Any


def run_dask(words: list[str], config: dict[str, Any], log: str) -> None:
    """`dask WORDS`, with settings, and all that it says in a file."""
    import dask.config
    from dask.cli import run_cli

    with open(log, "ab") as file:
        for number in (1, 2):
            os.dup2(file.fileno(), number)
    sys.argv = ["dask", *words]
    with dask.config.set(config):
        run_cli()
