"""A deterministic simulation: the real services on PostgreSQL against a world made from a seed.

The world holds a clock, a provider and everything that can happen between two steps of the
product: other callers, jobs, events, people, and a crash at any boundary. `world.py` is the way
in; `python -m tests.simulation --seed N` replays a seed with its trace.
"""
