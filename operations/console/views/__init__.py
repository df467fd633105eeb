"""Views: parse, one call, answer."""
