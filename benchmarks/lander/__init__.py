"""The parts of `benchmarks/lunar_lander.py`, which compares our Lunar Lander with Gymnasium's."""
