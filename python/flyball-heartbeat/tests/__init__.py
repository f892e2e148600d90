"""Tests of the package: `python -m unittest` in the folder above."""
