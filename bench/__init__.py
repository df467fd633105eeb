"""Measurements against other tools on the same machine; docs/benchmarks.md says how to read them."""
