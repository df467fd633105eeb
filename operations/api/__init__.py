"""The JSON API for agent builders."""
