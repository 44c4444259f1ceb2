"""Threads that wait without running in circles: PyTorch reads that once, when it is loaded."""

import os
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("torch")

# Says what the environment is when PyTorch is first looked for, and ends there.
WATCHED = """
import os, sys
class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            print("told", os.environ.get("OMP_WAIT_POLICY"), flush=True)
            os._exit(0)
sys.meta_path.insert(0, Watch())
import slencodings.cli.main
assert "torch" not in sys.modules
slencodings.cli.main.main()
"""


@pytest.mark.parametrize(("set_before", "told"), [(None, "PASSIVE"), ("active", "active")])
def test_sle_tells_threads_to_wait_passively_before_torch_is_loaded(set_before, told, tmp_path):
    items = [f"i{n}" for n in range(12)]
    np.savez(tmp_path / "X.npz", item=items, X=np.eye(12, 3))
    lines = [f"{item},{who},{'yn'[n % 2]}" for n, item in enumerate(items) for who in "ab"]
    (tmp_path / "crowd.csv").write_text("\n".join(["item,annotator,label", *lines]))
    environment = {k: v for k, v in os.environ.items() if k != "OMP_WAIT_POLICY"}
    environment |= {"OMP_WAIT_POLICY": set_before} if set_before else {}
    words = "train crowd.csv --features X.npz --model m.safetensors --epochs 1"
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, *words.split()],
        cwd=tmp_path,
        env=environment,
        text=True,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"told {told}\n"
