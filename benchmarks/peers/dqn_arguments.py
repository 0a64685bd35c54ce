"""What the peers of deep Q-learning are told: `SETTINGS STEPS SEED`, with the settings as JSON."""

import argparse
import json


def parse(description):
    """The `settings`, `steps` and `seed` of the command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("settings", type=json.loads)
    parser.add_argument("steps", type=int)
    parser.add_argument("seed", type=int)
    return parser.parse_args()
