"""Measurements against other tools on one machine; docs/benchmarks.md says how to read them."""
