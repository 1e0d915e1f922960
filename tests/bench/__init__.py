"""The benchmarks: MiniGPT's decoding beside that of other libraries, on the same weights.

`make bench` runs them. They are no tests: they read the clock, take minutes, and want a machine
that does nothing else. What can be said without a clock is tested in tests/solutions/test_work.py.
"""
