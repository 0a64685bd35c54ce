"""What a learner learns from one transition, and how it is made."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from helpers.regularised import Entropic
from mellowmax import Boltzmann, EpsilonGreedy, Mean
from mellowmax.learning import expected_sarsa, q_learning, sarsa

LEARNERS = [sarsa, expected_sarsa, q_learning]


@pytest.mark.parametrize("kind", LEARNERS)
def test_an_update_moves_one_entry_by_the_td_error(kind):
    rng = np.random.default_rng(0)
    q = rng.normal(size=(4, 3)).astype(np.float32)
    where = np.array([True, False, True])
    learner = kind(Boltzmann(2.0), 0.25)
    new, td_error = learner.update(jnp.asarray(q), 1, 2, 0.5, 0.9, 3, 0, where=jnp.asarray(where))
    row = q[3, where]
    worth = {
        sarsa: q[3, 0],
        expected_sarsa: (np.exp(2 * row) * row).sum() / np.exp(2 * row).sum(),
        q_learning: row.max(),
    }[kind]
    np.testing.assert_allclose(td_error, 0.5 + 0.9 * worth - q[1, 2], rtol=1e-5)
    change = np.asarray(new) - q
    np.testing.assert_allclose(change[1, 2], 0.25 * np.asarray(td_error), rtol=1e-5)
    assert np.count_nonzero(change) == 1
    assert new.dtype == np.float32


@pytest.mark.parametrize("weight", [1.0, 1 / 3])
def test_sarsa_with_a_bonus_has_the_mean_of_expected_sarsa(weight):
    """The target of each action is its value minus log(policy / weight) / beta, and so the value.

    Without the bonus `sarsa` could not tell log-sum-exp from Boltzmann's softmax.
    """
    softmax, row = Soft(2.0, weight), jnp.asarray([0.5, -0.3, 1.0], jnp.float32)
    q = jnp.stack([0 * row, row])
    value = np.asarray(softmax.value(row))
    for action in range(3):
        target = sarsa(softmax).update(q, 0, 0, 0.0, 1.0, 1, action).td_error
        bonus = -np.log(np.asarray(softmax.policy(row))[action] / weight) / 2
        np.testing.assert_allclose(target, float(row[action]) + bonus, rtol=1e-5)
        np.testing.assert_allclose(target, value, rtol=1e-5)
    where = jnp.array([True, False, True])
    one = sarsa(softmax).update(q, 0, 0, 0.0, 1.0, 1, 2, where=where).td_error
    same = expected_sarsa(softmax).update(q, 0, 0, 0.0, 1.0, 1, 2, where=where).td_error
    np.testing.assert_allclose(one, same, rtol=1e-5)
    whole = Entropic(2.0, weight)  # which gives all of its bonus to every action
    targets = [sarsa(whole).update(q, 0, 0, 0.0, 1.0, 1, a).td_error for a in range(3)]
    np.testing.assert_allclose(np.dot(np.asarray(softmax.policy(row)), targets), value, rtol=1e-5)
    assert np.ptp(targets) > 0.1


class Soft(Entropic):
    """Entropic, with the bonus of each action."""

    def action_bonus(self, q, *, axis=-1, where=None):
        return -jnp.log(self.policy(q, axis=axis, where=where) / self.weight) / self.beta


def test_a_schedule_is_looked_up_at_the_step():
    learner = sarsa(lambda step: EpsilonGreedy(0.1 * step), lambda step: 1.0 / (1 + step))
    now = learner.at(4)
    assert (now.softmax, now.learning_rate) == (EpsilonGreedy(0.4), 0.2)
    q = learner.init(2, 2)
    new, _ = learner.update(q, 0, 0, 1.0, 0.0, 1, 0, step=4)
    assert new[0, 0] == np.float32(0.2)


@pytest.mark.parametrize("kind", LEARNERS)
def test_a_bad_learner_is_one_sentence(kind):
    with pytest.raises(ValueError, match=r"`learning_rate` must be in \[0, 1\], got 1.5"):
        kind(Mean(), 1.5)
    with pytest.raises(ValueError, match=r"`discount` must be in \[0, 1\], got -0.5"):
        kind(Mean(), discount=-0.5)
    rule = r"^`softmax` must be a Softmax such as Mellowmax\(5.0\), or a function of the step that"
    for softmax, got in ((3, "3"), (Mean, "the class Mean")):
        with pytest.raises(TypeError, match=f"{rule} gives one, got {got}$"):
            kind(softmax, 0.1)
    with pytest.raises(TypeError, match=r"^`softmax` must be a schedule that gives a Softmax, got"):
        kind(lambda step: 0.5).act(0.5, jnp.zeros(2))
