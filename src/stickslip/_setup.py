"""What importing stickslip does to JAX: double precision, and compiled code that is fast,
kept on disk and run at once.

STICKSLIP_CACHE chooses the folder for compiled code (default ~/.cache/stickslip), or "off".
"""

import contextlib
import mmap
import os
from pathlib import Path

import jax
import jaxlib
from jax.interpreters import ad

jax.config.update("jax_enable_x64", True)

# In a batch, JAX keeps from each branch of a `cond`, behind a stop_gradient, the runs that take the other
# one: also the derivatives of these runs, and to transpose that it has no rule. Nothing comes back from a
# branch that was not taken.
with contextlib.suppress(ImportError):  # a version of JAX without this primitive needs no rule for it
    from jax.extend.core.primitives import stop_gradient_p

    ad.primitive_transposes.setdefault(stop_gradient_p, lambda cotangent, x: [None])

# On CPUs a program runs in the thread that calls it. Handed to another one, as JAX does of itself, each piece
# of a run waits for that to wake up, and runs in several threads for each other.
jax.config.update("jax_cpu_enable_async_dispatch", False)

# XLA's CPU backend compiles a loop into one function if it touches fewer bytes than this option says (1024 if
# nobody says otherwise). A time step is many tiny operations: as one function it runs 4 to 10 times faster.
_OPTION = "xla_cpu_small_while_loop_byte_threshold"
_BYTES = 10_000_000


def _cache_folder() -> Path | None:
    wanted = os.environ.get("STICKSLIP_CACHE", "")
    if wanted.lower() == "off":
        return None
    try:
        folder = (
            Path(wanted)
            if wanted
            else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stickslip"
        )
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # no home, or one that cannot be written to: compile each time
        return None
    return folder if os.access(folder, os.W_OK) else None


def _knows_option(folder: Path | None) -> bool:
    """Whether this jaxlib has the option: XLA aborts on one it does not know. Asked once per version."""
    note = folder / f"jaxlib-{jaxlib.__version__}-{_OPTION}" if folder else None
    # nothing that lies in a cache may do harm: it is asked again
    with contextlib.suppress(OSError, ValueError):
        if note and note.read_text() in ("yes", "no"):
            return note.read_text() == "yes"
    known = False
    for library in Path(jaxlib.__file__).parent.glob("*.so"):
        with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            known = known or content.find(_OPTION.encode()) >= 0
    with contextlib.suppress(OSError):
        if note:
            note.write_text("yes" if known else "no")
    return known


def _compile_steps_as_one_function(folder: Path | None) -> None:
    """Read by XLA when the first computation starts;
    a process that computed before runs as correctly, but slower.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_backend_extra_options" not in flags and _knows_option(folder):
        os.environ["XLA_FLAGS"] = f"{flags} --xla_backend_extra_options={_OPTION}={_BYTES}".strip()


def _keep_compiled_code(folder: Path | None) -> None:
    if folder is None or getattr(jax.config, "jax_compilation_cache_dir", None) is not None:
        return
    jax.config.update("jax_compilation_cache_dir", str(folder / "compiled"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


cache_folder = _cache_folder()
_compile_steps_as_one_function(cache_folder)
_keep_compiled_code(cache_folder)
