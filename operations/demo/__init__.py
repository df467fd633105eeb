"""The Northwind story: an agent, a provider that fails, and what became of each refund."""
