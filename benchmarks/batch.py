"""A batch of slider-cranks with different friction, on whatever device JAX finds: cost per system and step.

python benchmarks/batch.py
"""

import os
import time

os.environ["STICKSLIP_CACHE"] = "off"

import jax
import jax.numpy as jnp

import stickslip as ss

STEPS, BATCHES = 100, (64, 4096, 32768)


def main():
    print(f"jax {jax.__version__} on {jax.devices()[0]}")
    b = ss.benchmarks.load("slider-crank")
    kinds = [make(friction=law) for make in (ss.Rattle, ss.RadauIIA) for law in ("stagewise", "printed")]
    for method in kinds:

        def run(mu, method=method):
            sol = ss.simulate(type(b.system)(mu=mu), method, b.q0, b.u0, t1=STEPS * b.dt, dt=b.dt)
            return sol.q[-1], sol.result._value

        batched = jax.jit(jax.vmap(run))
        for size in BATCHES if jax.default_backend() != "cpu" else BATCHES[:1]:
            mus = jnp.linspace(0.0, 0.05, size)
            began = time.perf_counter()
            jax.block_until_ready(batched(mus))
            first = time.perf_counter() - began
            began = time.perf_counter()
            _, failed = jax.block_until_ready(batched(mus))
            us = (time.perf_counter() - began) / size / STEPS * 1e6
            bad = int((failed != 0).sum())
            name = f"{type(method).__name__}, {method.friction} friction"
            print(f"{name:30s} {size:6d} systems: first {first:.1f} s, then {us:.3f} us a step, {bad} failed")


if __name__ == "__main__":
    main()
