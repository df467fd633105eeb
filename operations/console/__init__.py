"""The console: where people find out what happened to a refund, and decide."""
