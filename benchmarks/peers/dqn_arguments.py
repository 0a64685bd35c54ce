"""What the peers of deep Q-learning are told: `SETTINGS STEPS SEED`, with the settings as JSON."""

import argparse
import json


def parser(description):
    """A parser of the `settings`, `steps` and `seed` of the command line."""
    result = argparse.ArgumentParser(description=description)
    result.add_argument("settings", type=json.loads)
    result.add_argument("steps", type=int)
    result.add_argument("seed", type=int)
    return result
