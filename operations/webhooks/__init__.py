"""Where the provider posts its events."""
