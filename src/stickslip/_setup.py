"""What importing stickslip does to JAX: double precision, and compiled code kept on disk between runs."""

import os
from pathlib import Path

import jax

# XLA's CPU backend compiles a loop into one function if what it touches is below this many bytes (default 1024).
# A time step is many tiny operations: as one function it runs 5 to 10 times faster. The option is read when the first
# computation starts; a process that computed before importing stickslip runs as correctly, but slower.
_ONE_FUNCTION = "xla_cpu_small_while_loop_byte_threshold"
_flags = os.environ.get("XLA_FLAGS", "")
if "xla_backend_extra_options" not in _flags:
    os.environ["XLA_FLAGS"] = f"{_flags} --xla_backend_extra_options={_ONE_FUNCTION}=10000000".strip()

jax.config.update("jax_enable_x64", True)


def _keep_compiled_code() -> None:
    """Unless the user chose a place, or none (STICKSLIP_CACHE=off), in ~/.cache/stickslip."""
    wanted = os.environ.get("STICKSLIP_CACHE", "")
    if wanted.lower() == "off" or jax.config.jax_compilation_cache_dir is not None:
        return
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    directory = Path(wanted) if wanted else base / "stickslip" / "compiled"
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:  # a home that cannot be written to: compile each time
        return
    jax.config.update("jax_compilation_cache_dir", str(directory))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


_keep_compiled_code()
