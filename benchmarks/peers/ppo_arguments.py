"""What the peers of PPO are told: `SETTINGS STEPS SEED ENVIRONMENT`, with the settings as JSON."""

import argparse
import json


def parser(description):
    """A parser of the `settings`, `steps`, `seed` and `environment` of the command line."""
    result = argparse.ArgumentParser(description=description)
    result.add_argument("settings", type=json.loads)
    result.add_argument("steps", type=int)
    result.add_argument("seed", type=int)
    result.add_argument("environment")
    return result
