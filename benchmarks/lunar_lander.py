"""Our Lunar Lander compared with Gymnasium's, from one step to policies: docs/lunar_lander.md.

    python benchmarks/lunar_lander.py --out DIR                     both sides, then the tables
    python benchmarks/lunar_lander.py --out DIR --side gymnasium    half an hour on two cores
    python benchmarks/lunar_lander.py --out DIR --side ours         a minute on an accelerator
    python benchmarks/lunar_lander.py --compare DIR                 the tables
    python benchmarks/lunar_lander.py --out DIR --episodes 500 --flights 100 --contacts 100

Each side writes files and skips those that exist, so a run may be stopped and started again. All
random numbers are made from seeds: an episode has the same ground, push, dispersion and random
actions on both sides, even on two machines. Gymnasium's side needs `gymnasium[box2d]`; ours needs
only JAX, and for the part `contact` the file of Gymnasium's states.
"""

from __future__ import annotations

import argparse
import pathlib

from lander import compare
from lander.files import Plan

PARTS = ("flight", "contact", "policies")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=pathlib.Path, help="the folder of the files")
    parser.add_argument("--side", choices=("gymnasium", "ours"), help="one side; else both")
    parser.add_argument("--compare", type=pathlib.Path, metavar="DIR", help="print the tables")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--episodes", type=int, default=20_000, help="of each policy")
    parser.add_argument("--flights", type=int, default=1000)
    parser.add_argument("--contacts", type=int, default=1000)
    parser.add_argument("--first-seed", type=int, default=2_000_000)
    parser.add_argument("--workers", type=int, default=2, help="processes of Gymnasium's side")
    options = parser.parse_args()
    if not (options.out or options.compare):
        parser.error("one of --out and --compare is needed")
    plan = Plan(options.episodes, options.flights, options.contacts, options.first_seed)
    if options.out and options.side != "ours":
        from lander import theirs

        theirs.collect(options.out, plan, options.parts, options.workers)
    if options.out and options.side != "gymnasium":
        from lander import ours

        ours.collect(options.out, plan, options.parts)
    if options.compare or not options.side:
        compare.compare(options.compare or options.out)


if __name__ == "__main__":
    main()
