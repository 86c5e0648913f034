"""Parts of the test runner. Python's standard library only, Python 3.9 or newer."""
