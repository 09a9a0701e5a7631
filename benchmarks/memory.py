"""What long runs keep in memory, above import: each in a fresh process.

.venv/bin/python benchmarks/memory.py
"""

import os
import subprocess
import sys

START = """
import resource, jax, jax.numpy as jnp, numpy as np, stickslip as ss

def megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

before = megabytes()
"""
RUN = """
b = ss.benchmarks.load("bouncing-ball", 2)
sol = ss.simulate(b.system, ss.Rattle(), b.q0, b.u0, t1={steps} * 1e-5, dt=1e-5, save_every={every})
"""
GRADIENT = """
b = ss.benchmarks.load("mass-on-slope")
end = lambda u: jnp.sum(ss.simulate(b.system, ss.Rattle(), b.q0, u, t1={steps} * 1e-5, dt=1e-5).q[-1])
jax.block_until_ready(jax.jit(jax.grad(end))(b.u0))
"""


def megabytes(code: str, **numbers: int) -> float:
    out = subprocess.run(
        [sys.executable, "-c", START + code.format(**numbers) + "print(megabytes() - before)"],
        env={**os.environ, "STICKSLIP_CACHE": "off"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return float(out.stdout.split()[-1])


def main() -> None:
    print(f"a million steps, every thousandth kept: {megabytes(RUN, steps=10**6, every=1000):.0f} MB")
    print(f"a million steps, all kept: {megabytes(RUN, steps=10**6, every=1):.0f} MB")
    print(f"gradient through 1e5 steps: {megabytes(GRADIENT, steps=10**5):.0f} MB")


if __name__ == "__main__":
    main()
