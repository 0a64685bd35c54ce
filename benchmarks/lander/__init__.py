"""Our Lunar Lander beside Gymnasium's: what `benchmarks/lunar_lander.py` is made of."""
