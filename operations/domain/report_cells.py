"""Text that was not written by us, in a file that a spreadsheet will open."""

#: What a spreadsheet takes for the beginning of a formula, or strips before it looks for one.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def harmless(text: str) -> str:
    """The text as a cell that no spreadsheet runs (OWASP, "CSV Injection")."""
    return f"'{text}" if text.startswith(_FORMULA) else text
