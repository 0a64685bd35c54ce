"""The average reward of an endless task, with bounds.

Without a discount the values of an endless task have no limit, but the average reward of a step has
one: the *gain* `g`. How much more a start in a state earns in total than the gain of each step is
the *bias* `h`, which is determined up to a constant. With a softmax's operator `f`,

    g + h(s) = f(q(s, .)),    q(s, a) = r(s, a) + sum_t P(t | s, a) h(t).

A sweep `T h = f(r + P h)` changes `h` by `d = T h - h`, and `h` is good where `d` is the same for
all states. Two methods bring that about: relative value iteration (`sweeps`), and Newton's method
(`newton`), which for the maximum is Howard's policy iteration.

**The bounds** follow from one sweep, whatever the method. Let `f` not fall when an action gets
better, and move with a shift of all actions. If `d >= low` then `T^n h >= h + n low`, so the gain
is at least `low`, and likewise at most the maximum of `d`. The policy of the softmax earns `f(q)`
minus its bonus, and the optimum is the gain of the maximum, whose sweep changes `h` by at most `d`
and the gap of `f`. So

    min d <= gain <= max d,    optimum - gain of the policy <= max(d + gap) - min(d - bonus),

and the second needs nothing of `f`.

**Several gains.** A model is *unichain* if every policy comes to the same set of states from
everywhere. If it is not, the gain may depend on the first state. Two sets of states that nothing
leaves are found at once (`unichain`). If only some policies have two, and the softmax may choose
among them, the change of the sweeps settles at different numbers, and these are the gains.

References:
    Puterman (2005), Markov decision processes, chapters 8 and 9. White (1963), Dynamic programming,
        Markov chains, and the method of successive approximations. Odoni (1969), On finding the
        maximal gain for Markov decision processes. Schweitzer (1971), Iterative solution of the
        functional equations of undiscounted Markov renewal programming. Howard (1960), Dynamic
        programming and Markov processes.
"""

from .solution import AverageSolution
from .solve import solve_average

__all__ = ["AverageSolution", "solve_average"]
