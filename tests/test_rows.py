"""Where rows lie: parts come back where they were, on every layout."""

import jax.numpy as jnp
import numpy as np
import pytest

from stickslip.rows import Layout, LevelLayout, StageLayout

LAYOUTS = [Layout(2, 1, 3, 4), Layout(0, 0, 2, 2), Layout(1, 0, 0, 0), Layout(0, 2, 1, 0)]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "of", [StageLayout, lambda a: StageLayout(a, 3), LevelLayout], ids=["step", "stages", "levels"]
)
def test_parts_come_back_where_they_were(layout, of):
    whole = of(layout)
    rows = jnp.arange(float(whole.size))
    b, N, F = whole.split(rows)
    assert np.array_equal(whole.join(b, N, F), rows)
    assert b.size + N.size + F.size == whole.size
    assert np.array_equal(np.sort(np.ravel(b)), whole.bilateral)
    # control: parts in another order are other rows
    if F.size:
        assert not np.array_equal(whole.join(b, N, F[..., ::-1] + 1.0), rows)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gaps_and_velocities_make_all_rows(layout):
    rows = jnp.arange(float(layout.size))
    g, gamma, N, F = layout.split(rows)
    assert np.array_equal(layout.merge(jnp.concatenate([g, N]), jnp.concatenate([gamma, F])), rows)
    assert np.array_equal(rows[layout.gaps], jnp.concatenate([g, N]))
    spread = layout.spread(rows[layout.gaps], -1.0)
    assert np.array_equal(np.flatnonzero(np.asarray(spread) >= 0.0), layout.gaps)


def test_the_worst_of_stages_and_levels_is_found_row_by_row():
    layout = Layout(1, 1, 1, 1)
    stages = jnp.array([[1.0, -5.0, 0.0, 2.0], [-3.0, 4.0, 0.5, 0.0]])
    assert np.array_equal(layout.worst(stages.reshape(-1)), [3.0, 5.0, 0.5, 2.0])
    # position (g, N), velocity and acceleration (g, gamma, N, F)
    levels = jnp.array([9.0, -1.0, 1.0, 2.0, 0.5, 0.0, 0.0, -3.0, 0.2, 0.1])
    assert np.array_equal(LevelLayout(layout).worst(levels), [9.0, 3.0, 1.0, 0.1])


@pytest.mark.parametrize(
    ("row", "name"),
    [
        (0, "g[0]"),
        (2, "gamma[0]"),
        (4, "contact 1"),
        (9, "friction velocity[3]"),
        (10, "the equations of motion"),
    ],
)
def test_a_row_has_a_name(row, name):
    assert Layout(2, 1, 3, 4).name(row) == name
