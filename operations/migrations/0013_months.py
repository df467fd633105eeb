"""Months of events are made and removed by functions of the owner, whoever calls them.

They take no name that they don't check, and remove nothing that is younger than 30 days.
"""

from django.db import migrations

_MAKE = """
CREATE FUNCTION reconcile_make_month(month timestamptz) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp SET timezone = 'UTC' AS $$
DECLARE
    part text := 'operations_webhookevent_' || to_char(month, 'YYYY_MM');
BEGIN
    IF month IS DISTINCT FROM date_trunc('month', month) OR month < '2011-01-01' THEN
        RAISE EXCEPTION '% is not the first moment of a month.', month;
    END IF;
    EXECUTE format(
        'CREATE TABLE public.%I PARTITION OF public.operations_webhookevent'
        ' FOR VALUES FROM (%L) TO (%L)', part, month, month + interval '1 month');
    EXECUTE format('GRANT SELECT ON public.%I TO %I', part, session_user);
END;
$$;
REVOKE ALL ON FUNCTION reconcile_make_month(timestamptz) FROM PUBLIC;
"""

# Only a part that is about to go is indexed; receiving does not pay for it.
_INDEX = """
CREATE FUNCTION reconcile_index_month(part text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    IF part !~ '^operations_webhookevent_([0-9]{4}_[0-9]{2}|rest)$' THEN
        RAISE EXCEPTION '% is no month of events.', part;
    END IF;
    EXECUTE format(
        'CREATE INDEX IF NOT EXISTS %I ON public.%I (last_received_at)', part || '_last', part);
END;
$$;
REVOKE ALL ON FUNCTION reconcile_index_month(text) FROM PUBLIC;
"""

# The whole is locked first, as those who store do: in another order the two would wait in a ring.
_REMOVE = """
CREATE FUNCTION reconcile_remove_month(part text, before timestamptz) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp SET timezone = 'UTC' AS $$
DECLARE
    latest timestamptz := LEAST(before, now() - interval '30 days');
    busy boolean;
BEGIN
    IF part !~ '^operations_webhookevent_([0-9]{4}_[0-9]{2}|rest)$' THEN
        RAISE EXCEPTION '% is no month of events.', part;
    END IF;
    IF part !~ 'rest$'
        AND to_timestamp(right(part, 7), 'YYYY_MM') + interval '1 month' > latest THEN
        RETURN FALSE;
    END IF;
    LOCK TABLE ONLY public.operations_webhookevent IN ACCESS EXCLUSIVE MODE;
    EXECUTE format('LOCK TABLE public.%I IN ACCESS EXCLUSIVE MODE', part);
    EXECUTE format(
        'SELECT EXISTS (SELECT 1 FROM public.operations_inboxitem AS item'
        ' JOIN public.%1$I AS event ON event.id = item.event_id)'
        ' OR EXISTS (SELECT 1 FROM public.%1$I WHERE last_received_at >= $1)', part)
        INTO busy USING latest;
    IF busy THEN
        RETURN FALSE;
    END IF;
    EXECUTE format('DROP TABLE public.%I', part);
    IF part ~ 'rest$' THEN
        EXECUTE format(
            'CREATE TABLE public.%I PARTITION OF public.operations_webhookevent DEFAULT', part);
        EXECUTE format('GRANT SELECT ON public.%I TO %I', part, session_user);
    END IF;
    RETURN TRUE;
END;
$$;
REVOKE ALL ON FUNCTION reconcile_remove_month(text, timestamptz) FROM PUBLIC;
"""


class Migration(migrations.Migration):
    dependencies = [("operations", "0011_role_permissions")]
    operations = [
        migrations.RunSQL(_MAKE, "DROP FUNCTION reconcile_make_month(timestamptz)"),
        migrations.RunSQL(_INDEX, "DROP FUNCTION reconcile_index_month(text)"),
        migrations.RunSQL(_REMOVE, "DROP FUNCTION reconcile_remove_month(text, timestamptz)"),
    ]
