"""What can be done, one module an action."""
