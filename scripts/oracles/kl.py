# needs: mpmath==1.3.0
"""KL divergences of Dirichlets and their derivatives to 60 digits, as JSON: kl.py OUTPUT."""

import json
import random
import sys
from importlib.metadata import version
from pathlib import Path

import mpmath as mp

mp.mp.dps = 60


def pairs():
    """Kind, alpha, beta: far apart, of one scale, nearly equal, of one mean, and by hand."""
    rng = random.Random(2018)

    def wide(K):
        return [10 ** rng.uniform(-2, 8) for _ in range(K)]

    for K in (2, 3, 10):
        for _ in range(12):
            yield "wide", wide(K), wide(K)
            scale = 10 ** rng.uniform(-2, 8)
            yield "one scale", *([scale * rng.uniform(0.5, 2) for _ in range(K)] for _ in range(2))
            a = wide(K)
            yield "near", a, [x * (1 + rng.gauss(0, 1e-3)) for x in a]
            c = rng.uniform(0.5, 2)
            yield "one mean", a, [x * c for x in a]
    # Where the series begins to be used, and the ends.
    for x in (1e-2, 1.0, 7.999, 8.0, 8.001, 1e4, 1e8):
        yield "ends", [x, 1.0], [1.0, x + 0.5]
        yield "ends", [1e8, 1e-2, x], [x, 1e8, 1e-2]


def exact(alpha, beta):
    """The textbook formulas, which lose up to 30 of the 60 digits."""
    a, b = [mp.mpf(x) for x in alpha], [mp.mpf(x) for x in beta]
    A, B = sum(a), sum(b)
    kl = mp.loggamma(A) - mp.loggamma(B)
    for x, y in zip(a, b, strict=True):
        kl += mp.loggamma(y) - mp.loggamma(x) + (x - y) * (mp.psi(0, x) - mp.psi(0, A))
    both = list(zip(a, b, strict=True))
    in_alpha = [(x - y) * mp.psi(1, x) - (A - B) * mp.psi(1, A) for x, y in both]
    in_beta = [mp.psi(0, y) - mp.psi(0, x) - mp.psi(0, B) + mp.psi(0, A) for x, y in both]
    return float(kl), [float(g) for g in in_alpha], [float(g) for g in in_beta]


def main(path):
    """Write inputs and outputs of all pairs."""
    cases = []
    for kind, alpha, beta in pairs():
        kl, in_alpha, in_beta = exact(alpha, beta)
        cases.append(
            {
                "kind": kind,
                "alpha": alpha,
                "beta": beta,
                "kl": kl,
                "in_alpha": in_alpha,
                "in_beta": in_beta,
            }
        )
    result = {"mpmath": version("mpmath"), "cases": cases}
    Path(path).write_text(json.dumps(result, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
