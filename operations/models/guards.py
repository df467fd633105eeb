"""Guards: one trigger a table that checks all that a row must be, together.

The database reads a CHECK, and the condition of a trigger, from its text and prepares it anew for
every statement that writes to the table; for the tables that every refund writes, that was half
of the database's work. A function's expressions are prepared once a connection.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pgtrigger

from operations.models.triggers import Always


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A row is refused when `when`, SQL over NEW and OLD, is true; null lets it pass.

    `query`: another condition, which reads tables, asked only where `when` is true.
    `is_check`: refused as a violated CHECK, which the application sees as an IntegrityError.
    """

    name: str
    when: str
    query: str = ""
    is_check: bool = False


def check(name: str, condition: str) -> Rule:
    """What must hold for a row, as in a CHECK."""
    return Rule(name=name, when=f"NOT ({condition})", is_check=True)


def frozen(name: str, columns: Sequence[str]) -> Rule:
    """Columns that an UPDATE leaves as they are."""
    new, old = (", ".join(f'{row}."{column}"' for column in columns) for row in ("NEW", "OLD"))
    return Rule(name=name, when=f"({new}) IS DISTINCT FROM ({old})")


class Guard(Always):
    """Refuses a row by the first of these rules that it breaks, and names the rule."""

    when = pgtrigger.Before

    def __init__(
        self, *, name: str, inserted: Sequence[Rule], updated: Sequence[Rule] = ()
    ) -> None:
        self.rules = sorted({rule.name for rule in (*inserted, *updated)})
        checks = sorted({rule.name for rule in (*inserted, *updated) if rule.is_check})
        named = ", ".join(f"'{check}'" for check in checks)
        super().__init__(
            name=name,
            operation=pgtrigger.Insert | pgtrigger.Update if updated else pgtrigger.Insert,
            declare=[("broken", "text")],
            func=f"""
            IF TG_OP = 'INSERT' THEN
                {_asked(inserted)}
            ELSE
                {_asked(updated)}
            END IF;
            IF broken IS NOT NULL THEN
                RAISE EXCEPTION 'This row of % is refused by %.', TG_TABLE_NAME, broken
                USING CONSTRAINT = broken, TABLE = TG_TABLE_NAME, ERRCODE = CASE
                    WHEN broken = ANY (ARRAY[{named}]::text[]) THEN 'check_violation'
                    ELSE 'raise_exception' END;
            END IF;
            RETURN NEW;
            """,
        )


def known(column: str, values: Iterable[str]) -> str:
    """The condition that a text column has one of these values."""
    return f'NEW."{column}" IN ({", ".join(f"{chr(39)}{value}{chr(39)}" for value in values)})'


def _asked(rules: Sequence[Rule]) -> str:
    """First what the row itself answers, in one expression; then what needs a query."""
    plain = [f"WHEN {rule.when} THEN '{rule.name}'" for rule in rules if not rule.query]
    text = f"broken := CASE {' '.join(plain)} END;" if plain else "NULL;"
    for rule in rules:
        if rule.query:
            text += f"""
                IF broken IS NULL AND ({rule.when}) THEN
                    IF {rule.query} THEN broken := '{rule.name}'; END IF;
                END IF;"""
    return text
