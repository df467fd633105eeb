"""The tables, as they are now: nothing was released before this.

Constraints, indexes and triggers stand in their model's options, so that Django builds its picture
of a model once and not again for each of them; the triggers are installed by the last step.
"""

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
import pgtrigger.compiler
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

import operations.domain.audit
import operations.domain.closure
import operations.domain.statuses
import operations.models.triggers

# Django makes no partitioned tables. The partitions of the months around now are made here, those
# of later months by the job `tidy`.
_TO_PARTITIONS = """
ALTER TABLE operations_webhookevent RENAME TO operations_webhookevent_plain;
ALTER SEQUENCE operations_webhookevent_id_seq RENAME TO operations_webhookevent_plain_id_seq;
ALTER INDEX operations_webhookevent_pkey RENAME TO operations_webhookevent_plain_pkey;

CREATE TABLE operations_webhookevent (LIKE operations_webhookevent_plain INCLUDING CONSTRAINTS)
    PARTITION BY RANGE (filed_at);
CREATE SEQUENCE operations_webhookevent_id_seq AS bigint OWNED BY operations_webhookevent.id;
ALTER TABLE operations_webhookevent
    ALTER COLUMN id SET DEFAULT nextval('operations_webhookevent_id_seq');
ALTER TABLE operations_webhookevent
    ADD CONSTRAINT operations_webhookevent_pkey PRIMARY KEY (id, filed_at);

CREATE TABLE operations_webhookevent_rest PARTITION OF operations_webhookevent DEFAULT;
DO $$
DECLARE
    month timestamp := date_trunc('month', now() AT TIME ZONE 'UTC');
BEGIN
    FOR step IN -2..3 LOOP
        EXECUTE format(
            'CREATE TABLE %I PARTITION OF operations_webhookevent FOR VALUES FROM (%L) TO (%L)',
            'operations_webhookevent_' || to_char(month + step * interval '1 month', 'YYYY_MM'),
            (month + step * interval '1 month') AT TIME ZONE 'UTC',
            (month + (step + 1) * interval '1 month') AT TIME ZONE 'UTC'
        );
    END LOOP;
END $$;

DROP TABLE operations_webhookevent_plain;
"""


class _InstallTriggers(Operation):
    """Install the triggers that the models' options name; they go with their tables."""

    reversible = True

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """The options name them already."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        """Install them all."""
        for (app, _), model in to_state.models.items():
            if app == app_label:
                for trigger in model.options.get("triggers", []):
                    schema_editor.execute(trigger.install_sql, params=None)

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        """Nothing: each goes with its table."""

    def describe(self) -> str:
        """What the step does."""
        return "Install the triggers"


class Migration(migrations.Migration):

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='WebhookEvent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('endpoint_account', models.CharField(blank=True, default='', max_length=64)),
                ('event_account', models.CharField(blank=True, default='', max_length=64)),
                ('event_id', models.CharField(max_length=255)),
                ('event_type', models.CharField(max_length=255)),
                ('livemode', models.BooleanField(blank=True, null=True)),
                ('provider_created_at', models.DateTimeField(blank=True, null=True)),
                ('raw', models.BinaryField()),
                ('payload', models.JSONField()),
                ('received_at', models.DateTimeField()),
                ('last_received_at', models.DateTimeField()),
                ('deliveries', models.PositiveIntegerField(default=1)),
                ('filed_at', models.DateTimeField()),
                ('backfill', models.BigIntegerField(blank=True, null=True)),
            ],
            options={
                'triggers': [pgtrigger.compiler.Trigger(name='webhook_event_no_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot delete rows from % table', TG_TABLE_NAME;", hash='c4958fb2980abe91eeffa865db510c8603dc140e', operation='DELETE', pgid='pgtrigger_webhook_event_no_delete_ef413', table='operations_webhookevent', when='BEFORE')), pgtrigger.compiler.Trigger(name='webhook_event_no_truncate', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'Rows of % are never removed.', TG_TABLE_NAME;", hash='1b18f56fbf0b1d1498ecbd18a6f2718219bcf43a', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_webhook_event_no_truncate_8bbc0', table='operations_webhookevent', when='BEFORE')), pgtrigger.compiler.Trigger(name='webhook_event_frozen', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."id" IS DISTINCT FROM (NEW."id") OR OLD."endpoint_account" IS DISTINCT FROM (NEW."endpoint_account") OR OLD."event_account" IS DISTINCT FROM (NEW."event_account") OR OLD."event_id" IS DISTINCT FROM (NEW."event_id") OR OLD."event_type" IS DISTINCT FROM (NEW."event_type") OR OLD."livemode" IS DISTINCT FROM (NEW."livemode") OR OLD."provider_created_at" IS DISTINCT FROM (NEW."provider_created_at") OR OLD."filed_at" IS DISTINCT FROM (NEW."filed_at") OR OLD."raw" IS DISTINCT FROM (NEW."raw") OR OLD."payload" IS DISTINCT FROM (NEW."payload") OR OLD."received_at" IS DISTINCT FROM (NEW."received_at") OR OLD."backfill" IS DISTINCT FROM (NEW."backfill"))', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='37793d3cd7b2ba39a24d83bada421b8003320f3b', operation='UPDATE', pgid='pgtrigger_webhook_event_frozen_7c5cb', table='operations_webhookevent', when='BEFORE'))],
                'constraints': [models.CheckConstraint(condition=models.Q(('event_id', ''), _negated=True), name='webhook_event_has_an_id')],
            },
        ),
        migrations.RunSQL(_TO_PARTITIONS, migrations.RunSQL.noop),
        migrations.AddConstraint(
            model_name='webhookevent',
            constraint=models.UniqueConstraint(fields=('event_id', 'event_account', 'filed_at'), name='webhook_event_once'),
        ),
        migrations.AddIndex(
            model_name='webhookevent',
            index=models.Index(condition=models.Q(('backfill__isnull', False)), fields=['backfill'], name='webhook_event_by_backfill'),
        ),
        migrations.AddIndex(
            model_name='webhookevent',
            index=models.Index(models.F('event_account'), models.OrderBy(models.F('id'), descending=True), name='webhook_event_by_account'),
        ),
        migrations.CreateModel(
            name='Account',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.SlugField(max_length=64)),
                ('provider', models.CharField(default='stripe', max_length=32)),
                ('provider_account', models.CharField(blank=True, default='', max_length=64)),
                ('livemode', models.BooleanField()),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('paused_at', models.DateTimeField(blank=True, null=True)),
                ('paused_by', models.CharField(blank=True, default='', max_length=255)),
                ('pause_reason', models.CharField(blank=True, default='', max_length=500)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('name', 'livemode'), name='account_name_once_per_mode'), models.UniqueConstraint(fields=('provider', 'provider_account', 'livemode'), name='account_once_per_provider_and_mode')],
                'triggers': [pgtrigger.compiler.Trigger(name='account_frozen', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."id" IS DISTINCT FROM (NEW."id") OR OLD."name" IS DISTINCT FROM (NEW."name") OR OLD."provider" IS DISTINCT FROM (NEW."provider") OR OLD."provider_account" IS DISTINCT FROM (NEW."provider_account") OR OLD."livemode" IS DISTINCT FROM (NEW."livemode"))', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='2c56a7a06ffc35259bbdb16135a000c238c991dc', operation='UPDATE', pgid='pgtrigger_account_frozen_06edd', table='operations_account', when='BEFORE'))],
            },
        ),
        migrations.CreateModel(
            name='ApiKey',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=100)),
                ('prefix', models.CharField(max_length=16)),
                ('secret_hash', models.CharField(max_length=64, unique=True)),
                ('created_at', models.DateTimeField()),
                ('last_used_at', models.DateTimeField(blank=True, null=True)),
                ('revoked_at', models.DateTimeField(blank=True, null=True)),
            ],
        ),
        migrations.CreateModel(
            name='AuditEntry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('chain', models.CharField(max_length=64)),
                ('number', models.PositiveIntegerField()),
                ('operation_id', models.UUIDField(blank=True, null=True)),
                ('at', models.DateTimeField()),
                ('actor_kind', models.CharField(max_length=16)),
                ('actor_id', models.CharField(max_length=255)),
                ('actor_name', models.CharField(max_length=255)),
                ('actor_address', models.CharField(blank=True, default='', max_length=64)),
                ('action', models.CharField(max_length=64)),
                ('before', models.JSONField(default=dict)),
                ('after', models.JSONField(default=dict)),
                ('reason', models.TextField(blank=True, default='')),
                ('evidence_id', models.CharField(blank=True, default='', max_length=64)),
                ('previous_hash', models.CharField(max_length=64)),
                ('entry_hash', models.CharField(max_length=64)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('chain', 'number'), name='audit_number_once'), models.CheckConstraint(condition=models.Q(('actor_kind__in', [operations.domain.audit.ActorKind['API_KEY'], operations.domain.audit.ActorKind['COMMAND'], operations.domain.audit.ActorKind['JOB'], operations.domain.audit.ActorKind['PERSON'], operations.domain.audit.ActorKind['WEBHOOK']])), name='audit_actor_known')],
                'triggers': [pgtrigger.compiler.Trigger(name='audit_no_update', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='de2c61a2f1f6ab868e3230a18f5f55967d9bfb6e', operation='UPDATE', pgid='pgtrigger_audit_no_update_720ed', table='operations_auditentry', when='BEFORE')), pgtrigger.compiler.Trigger(name='audit_no_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot delete rows from % table', TG_TABLE_NAME;", hash='300a39e03ac0ad4b9fd18bb5690a7c42c9093056', operation='DELETE', pgid='pgtrigger_audit_no_delete_8d22d', table='operations_auditentry', when='BEFORE')), pgtrigger.compiler.Trigger(name='audit_no_truncate', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'Rows of % are never removed.', TG_TABLE_NAME;", hash='861ef3bf075d3613da6d29a9596e81fb0ce4bb15', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_audit_no_truncate_e06e0', table='operations_auditentry', when='BEFORE')), pgtrigger.compiler.Trigger(name='audit_follows_the_last', sql=operations.models.triggers.AlwaysSql(func="\n            IF NEW.chain <> COALESCE(NEW.operation_id::text, 'system') THEN\n                RAISE EXCEPTION 'Chain % is not the one of this entry.', NEW.chain;\n            END IF;\n            IF NEW.previous_hash <> (CASE\n                WHEN NEW.number = 1 THEN '0000000000000000000000000000000000000000000000000000000000000000'\n                ELSE COALESCE((\n                    SELECT last.entry_hash FROM operations_auditentry AS last\n                    WHERE last.chain = NEW.chain AND last.number = NEW.number - 1\n                ), '')\n            END) THEN\n                RAISE EXCEPTION 'Entry % does not follow in chain %.', NEW.number, NEW.chain;\n            END IF;\n            RETURN NEW;\n            ", hash='1243291fe01f542f3db7ff01a4462406984a285c', operation='INSERT', pgid='pgtrigger_audit_follows_the_last_24526', table='operations_auditentry', when='BEFORE'))],
            },
        ),
        migrations.CreateModel(
            name='Policy',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(choices=[('close_by_absence', 'Closing by absence')], max_length=32)),
                ('enabled', models.BooleanField()),
                ('reason', models.TextField()),
                ('set_by', models.CharField(max_length=255)),
                ('set_by_name', models.CharField(max_length=255)),
                ('set_at', models.DateTimeField()),
            ],
            options={
                'indexes': [models.Index(fields=['name', '-id'], name='policy_newest')],
                'constraints': [models.CheckConstraint(condition=models.Q(('name__in', ['close_by_absence'])), name='policy_name_known'), models.CheckConstraint(condition=models.Q(models.Q(('reason', ''), _negated=True), models.Q(('set_by', ''), _negated=True)), name='policy_says_who_and_why')],
                'triggers': [pgtrigger.compiler.Trigger(name='policy_no_update', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='915f96dab0929cc9d268977707ac9e602000632c', operation='UPDATE', pgid='pgtrigger_policy_no_update_b648a', table='operations_policy', when='BEFORE')), pgtrigger.compiler.Trigger(name='policy_no_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot delete rows from % table', TG_TABLE_NAME;", hash='5a0d15853a2a5efd23ae2c637f680bd91e11f853', operation='DELETE', pgid='pgtrigger_policy_no_delete_f25bf', table='operations_policy', when='BEFORE')), pgtrigger.compiler.Trigger(name='policy_no_truncate', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'Rows of % are never removed.', TG_TABLE_NAME;", hash='7e3aebb5c549f767fd9a72a03c7365830e9be93d', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_policy_no_truncate_79ad5', table='operations_policy', when='BEFORE'))],
            },
        ),
        migrations.CreateModel(
            name='BackfillRun',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('since', models.DateTimeField()),
                ('by_itself', models.BooleanField()),
                ('started_by', models.CharField(max_length=255)),
                ('started_at', models.DateTimeField()),
                ('state', models.CharField(default='running', max_length=16)),
                ('cursor', models.CharField(blank=True, default='', max_length=255)),
                ('pages', models.PositiveIntegerField(default=0)),
                ('read', models.PositiveIntegerField(default=0)),
                ('stored', models.PositiveIntegerField(default=0)),
                ('failures', models.PositiveIntegerField(default=0)),
                ('problem', models.CharField(blank=True, default='', max_length=500)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('claimed_until', models.DateTimeField(blank=True, null=True)),
                ('account', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='backfills', to='operations.account')),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('state', 'running')), fields=['claimed_until'], name='backfill_running')],
                'constraints': [models.CheckConstraint(condition=models.Q(('state__in', ['running', 'done', 'failed'])), name='backfill_state_known'), models.CheckConstraint(condition=models.Q(('stored__lte', models.F('read'))), name='backfill_counts_fit'), models.CheckConstraint(condition=models.Q(models.Q(('finished_at__isnull', True), ('state', 'running')), models.Q(models.Q(('state', 'running'), _negated=True), ('finished_at__isnull', False)), _connector='OR'), name='backfill_finished_is_whole'), models.CheckConstraint(condition=models.Q(models.Q(('state', 'failed'), _negated=True), models.Q(('problem', ''), _negated=True), _connector='OR'), name='backfill_stopped_says_why')],
                'triggers': [pgtrigger.compiler.Trigger(name='backfill_frozen', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."id" IS DISTINCT FROM (NEW."id") OR OLD."account_id" IS DISTINCT FROM (NEW."account_id") OR OLD."since" IS DISTINCT FROM (NEW."since") OR OLD."by_itself" IS DISTINCT FROM (NEW."by_itself") OR OLD."started_by" IS DISTINCT FROM (NEW."started_by") OR OLD."started_at" IS DISTINCT FROM (NEW."started_at"))', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='6df93a3289a08e29ce02b77e89622924677a44be', operation='UPDATE', pgid='pgtrigger_backfill_frozen_b1ad8', table='operations_backfillrun', when='BEFORE')), pgtrigger.compiler.Trigger(name='backfill_goes_forward', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (NEW."read" < OLD."read" OR NEW."stored" < OLD."stored" OR NEW."pages" < OLD."pages" OR OLD."state" = \'done\')', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='6ac8a6d12574cd09ba124aadad7cca3f79b0e871', operation='UPDATE', pgid='pgtrigger_backfill_goes_forward_673fe', table='operations_backfillrun', when='BEFORE')), pgtrigger.compiler.Trigger(name='backfill_no_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot delete rows from % table', TG_TABLE_NAME;", hash='b80a1faebddd1767caad48c54f8dd9c06923fee1', operation='DELETE', pgid='pgtrigger_backfill_no_delete_29fe4', table='operations_backfillrun', when='BEFORE')), pgtrigger.compiler.Trigger(name='backfill_no_truncate', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'Rows of % are never removed.', TG_TABLE_NAME;", hash='d36d1611aff0fdf388ee5cd412647b2d221b4d3b', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_backfill_no_truncate_fc3a2', table='operations_backfillrun', when='BEFORE'))],
            },
        ),
        migrations.CreateModel(
            name='Dispute',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('provider_object_id', models.CharField(max_length=255)),
                ('charge', models.CharField(blank=True, default='', max_length=255)),
                ('payment_intent', models.CharField(blank=True, default='', max_length=255)),
                ('status', models.CharField(max_length=64)),
                ('reason', models.CharField(blank=True, default='', max_length=255)),
                ('amount', models.BigIntegerField()),
                ('currency', models.CharField(max_length=3)),
                ('blocks_refunds', models.BooleanField()),
                ('as_of', models.DateTimeField()),
                ('first_seen_at', models.DateTimeField()),
                ('account', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='disputes', to='operations.account')),
            ],
            options={
                'indexes': [models.Index(fields=['account', 'charge'], name='dispute_by_charge')],
                'constraints': [models.UniqueConstraint(fields=('account', 'provider_object_id'), name='dispute_once'), models.CheckConstraint(condition=models.Q(('provider_object_id', ''), _negated=True), name='dispute_has_an_id')],
                'triggers': [pgtrigger.compiler.Trigger(name='dispute_frozen', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."id" IS DISTINCT FROM (NEW."id") OR OLD."account_id" IS DISTINCT FROM (NEW."account_id") OR OLD."provider_object_id" IS DISTINCT FROM (NEW."provider_object_id") OR OLD."first_seen_at" IS DISTINCT FROM (NEW."first_seen_at"))', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='a3a2429a2b50e01381a6d890d5e61f581647f785', operation='UPDATE', pgid='pgtrigger_dispute_frozen_5f608', table='operations_dispute', when='BEFORE')), pgtrigger.compiler.Trigger(name='dispute_no_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot delete rows from % table', TG_TABLE_NAME;", hash='55081975c863af4db5de6f7eeb78d6d9260dd576', operation='DELETE', pgid='pgtrigger_dispute_no_delete_307c7', table='operations_dispute', when='BEFORE')), pgtrigger.compiler.Trigger(name='dispute_no_truncate', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'Rows of % are never removed.', TG_TABLE_NAME;", hash='e6f059f383d2416264eb34e4d4b069bf6234de1c', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_dispute_no_truncate_7b54e', table='operations_dispute', when='BEFORE'))],
            },
        ),
        migrations.CreateModel(
            name='InboxItem',
            fields=[
                ('event', models.OneToOneField(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, primary_key=True, related_name='inbox_item', serialize=False, to='operations.webhookevent')),
                ('filed_at', models.DateTimeField()),
                ('provider_event_id', models.CharField(max_length=255)),
                ('event_account', models.CharField(blank=True, default='', max_length=64)),
                ('livemode', models.BooleanField(blank=True, null=True)),
                ('relevant', models.BooleanField()),
                ('refund_id', models.CharField(blank=True, default='', max_length=255)),
                ('facts', models.JSONField()),
                ('received_at', models.DateTimeField()),
                ('handle_after', models.DateTimeField()),
                ('claimed_until', models.DateTimeField(blank=True, null=True)),
                ('attempts', models.PositiveIntegerField(default=0)),
                ('failures', models.PositiveIntegerField(default=0)),
                ('handling', models.CharField(blank=True, default='', max_length=32)),
                ('error', models.CharField(blank=True, default='', max_length=500)),
                ('stuck_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('stuck_at__isnull', True)), fields=['handle_after', 'event'], name='inbox_item_due'), models.Index(condition=models.Q(('stuck_at__isnull', False)), fields=['stuck_at'], name='inbox_item_stuck')],
                'constraints': [models.CheckConstraint(condition=models.Q(('handling__in', ['', 'applied', 'no_change', 'needs_lookup', 'unmatched', 'not_ours', 'other_environment', 'wrong_mode', 'mismatch', 'ignored'])), name='inbox_item_handling_known'), models.CheckConstraint(condition=models.Q(('claimed_until__isnull', True), ('handle_after__gte', models.F('claimed_until')), _connector='OR'), name='inbox_item_claim_holds'), models.CheckConstraint(condition=models.Q(('stuck_at__isnull', True), models.Q(('error', ''), _negated=True), _connector='OR'), name='inbox_item_stuck_says_why')],
                'triggers': [pgtrigger.compiler.Trigger(name='inbox_item_frozen', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."event_id" IS DISTINCT FROM (NEW."event_id") OR OLD."filed_at" IS DISTINCT FROM (NEW."filed_at") OR OLD."provider_event_id" IS DISTINCT FROM (NEW."provider_event_id") OR OLD."event_account" IS DISTINCT FROM (NEW."event_account") OR OLD."received_at" IS DISTINCT FROM (NEW."received_at"))', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='00d570b7cc2ce40bcf1bc578ac9753b913fbb410', operation='UPDATE', pgid='pgtrigger_inbox_item_frozen_9b94d', table='operations_inboxitem', when='BEFORE')), pgtrigger.compiler.Trigger(name='inbox_item_handled_before_it_leaves', sql=pgtrigger.compiler.UpsertTriggerSql(func="\n            IF EXISTS (\n                SELECT 1 FROM gone WHERE NOT EXISTS (\n                    SELECT 1 FROM operations_eventhandling AS handling\n                    WHERE handling.provider_event_id = gone.provider_event_id\n                      AND handling.event_id = gone.event_id\n                )\n            ) THEN\n                RAISE EXCEPTION 'An item of the inbox is removed before it is handled.';\n            END IF;\n            RETURN NULL;\n            ", hash='1f7b56b76048e7c362eaf0ababfa10d34bef2999', level='STATEMENT', operation='DELETE', pgid='pgtrigger_inbox_item_handled_before_it_leaves_5d479', referencing='REFERENCING OLD TABLE AS gone ', table='operations_inboxitem', when='AFTER')), pgtrigger.compiler.Trigger(name='inbox_item_no_truncate', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'Rows of % are never removed.', TG_TABLE_NAME;", hash='5ed27c4a9255d348af67a67a73343c78de786d3f', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_inbox_item_no_truncate_99527', table='operations_inboxitem', when='BEFORE'))],
            },
        ),
        migrations.CreateModel(
            name='Payment',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('charge', models.CharField(max_length=255)),
                ('payment_intent', models.CharField(blank=True, default='', max_length=255)),
                ('currency', models.CharField(max_length=3)),
                ('captured', models.BigIntegerField()),
                ('refunded', models.BigIntegerField()),
                ('refunded_by_others', models.BigIntegerField(default=0)),
                ('disputed', models.BooleanField(default=False)),
                ('read_at', models.DateTimeField()),
                ('account', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='payments', to='operations.account')),
                ('refunds_blocked', models.BooleanField(db_default=False, default=False)),
            ],
            options={
                'indexes': [models.Index(fields=['account', 'payment_intent'], name='payment_by_intent')],
                'constraints': [models.UniqueConstraint(fields=('account', 'charge'), name='payment_once_per_charge'), models.CheckConstraint(condition=models.Q(('captured__gte', 0), ('refunded__gte', 0), ('refunded_by_others__gte', 0)), name='payment_amounts_not_negative')],
                'triggers': [pgtrigger.compiler.Trigger(name='payment_frozen', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."id" IS DISTINCT FROM (NEW."id") OR OLD."account_id" IS DISTINCT FROM (NEW."account_id") OR OLD."charge" IS DISTINCT FROM (NEW."charge"))', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='47e33fa2a722a9d2cd7ce45624887e7deef24b50', operation='UPDATE', pgid='pgtrigger_payment_frozen_46568', table='operations_payment', when='BEFORE'))],
            },
        ),
        migrations.CreateModel(
            name='RateBucket',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(max_length=8)),
                ('full_at', models.DateTimeField()),
                ('account', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='operations.account')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('account', 'kind'), name='rate_bucket_once')],
            },
        ),
        migrations.CreateModel(
            name='ReportFile',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=255)),
                ('content_hash', models.CharField(max_length=64)),
                ('size_bytes', models.BigIntegerField()),
                ('mapping', models.JSONField(default=dict)),
                ('uploaded_by', models.CharField(max_length=255)),
                ('uploaded_at', models.DateTimeField()),
                ('state', models.CharField(default='reading', max_length=16)),
                ('problem', models.CharField(blank=True, default='', max_length=500)),
                ('columns', models.JSONField(default=dict)),
                ('read_to_line', models.PositiveIntegerField(default=0)),
                ('read_bytes', models.BigIntegerField(default=0)),
                ('rows', models.PositiveIntegerField(default=0)),
                ('previewed', models.JSONField(default=dict)),
                ('read_at', models.DateTimeField(blank=True, null=True)),
                ('applied_by', models.JSONField(blank=True, null=True)),
                ('apply_asked_at', models.DateTimeField(blank=True, null=True)),
                ('applied_rows', models.PositiveIntegerField(default=0)),
                ('results', models.JSONField(default=dict)),
                ('applied_at', models.DateTimeField(blank=True, null=True)),
                ('claimed_until', models.DateTimeField(blank=True, null=True)),
                ('account', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='report_files', to='operations.account')),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('state__in', ['reading', 'applying'])), fields=['claimed_until'], name='report_file_in_work')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('state', 'refused'), _negated=True), fields=('account', 'content_hash'), name='report_file_once'), models.CheckConstraint(condition=models.Q(('state__in', ['reading', 'read', 'refused', 'applying', 'applied'])), name='report_file_state_known'), models.CheckConstraint(condition=models.Q(models.Q(('state', 'refused'), _negated=True), models.Q(('problem', ''), _negated=True), _connector='OR'), name='report_file_refused_says_why'), models.CheckConstraint(condition=models.Q(('applied_rows__lte', models.F('rows'))), name='report_file_applied_at_most_once'), models.CheckConstraint(condition=models.Q(('state__in', ['reading', 'read', 'refused']), models.Q(('applied_by__isnull', False), ('apply_asked_at__isnull', False)), _connector='OR'), name='report_file_applied_was_asked')],
                'triggers': [pgtrigger.compiler.Trigger(name='report_file_frozen', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."id" IS DISTINCT FROM (NEW."id") OR OLD."account_id" IS DISTINCT FROM (NEW."account_id") OR OLD."name" IS DISTINCT FROM (NEW."name") OR OLD."content_hash" IS DISTINCT FROM (NEW."content_hash") OR OLD."size_bytes" IS DISTINCT FROM (NEW."size_bytes") OR OLD."mapping" IS DISTINCT FROM (NEW."mapping") OR OLD."uploaded_by" IS DISTINCT FROM (NEW."uploaded_by") OR OLD."uploaded_at" IS DISTINCT FROM (NEW."uploaded_at"))', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='5b43fd53b4c6033d7f96e4e955c42659bc282b9b', operation='UPDATE', pgid='pgtrigger_report_file_frozen_65598', table='operations_reportfile', when='BEFORE')), pgtrigger.compiler.Trigger(name='report_file_goes_forward', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (NEW."read_to_line" < OLD."read_to_line" OR NEW."rows" < OLD."rows" OR OLD."state" = \'refused\' AND NEW."state" <> \'refused\' OR OLD."state" <> \'reading\' AND NEW."state" IN (\'reading\', \'refused\') AND NEW."state" <> OLD."state")', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='e91257a25a06f975e119e7d607ff81e1bb78e444', operation='UPDATE', pgid='pgtrigger_report_file_goes_forward_0581f', table='operations_reportfile', when='BEFORE')), pgtrigger.compiler.Trigger(name='report_file_no_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot delete rows from % table', TG_TABLE_NAME;", hash='208cd8b269473573f6b4f566dd8bd20f00723eba', operation='DELETE', pgid='pgtrigger_report_file_no_delete_cd81e', table='operations_reportfile', when='BEFORE')), pgtrigger.compiler.Trigger(name='report_file_no_truncate', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'Rows of % are never removed.', TG_TABLE_NAME;", hash='531a704afbf149ebb038e5c7a547a9e37ca0e8f9', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_report_file_no_truncate_62092', table='operations_reportfile', when='BEFORE'))],
            },
        ),
        migrations.CreateModel(
            name='Subscription',
            fields=[
                ('id', models.UUIDField(primary_key=True, serialize=False)),
                ('name', models.CharField(blank=True, default='', max_length=100)),
                ('address', models.CharField(max_length=500)),
                ('types', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=32), blank=True, default=list, size=None)),
                ('created_at', models.DateTimeField()),
                ('created_by', models.CharField(max_length=255)),
                ('secret', models.CharField(max_length=100)),
                ('previous_secret', models.CharField(blank=True, default='', max_length=100)),
                ('previous_secret_until', models.DateTimeField(blank=True, null=True)),
                ('disabled_at', models.DateTimeField(blank=True, null=True)),
                ('disabled_reason', models.CharField(blank=True, default='', max_length=500)),
                ('failures', models.PositiveIntegerField(default=0)),
                ('failing_since', models.DateTimeField(blank=True, null=True)),
                ('resume_at', models.DateTimeField(blank=True, null=True)),
                ('account', models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='operations.account')),
                ('api_key', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='subscriptions', to='operations.apikey')),
                ('disabled_by', models.CharField(blank=True, db_default='', default='', max_length=16)),
            ],
            options={
                'indexes': [models.Index(models.OrderBy(models.F('created_at'), descending=True), models.OrderBy(models.F('id'), descending=True), name='subscription_by_age')],
                'constraints': [models.CheckConstraint(condition=models.Q(('address__regex', '^https?://[^ ]+$')), name='subscription_has_an_address'), models.CheckConstraint(condition=models.Q(('types__contained_by', ['refund.failed', 'refund.flagged', 'refund.reopened', 'refund.succeeded', 'refund.unknown'])), name='subscription_types_known'), models.CheckConstraint(condition=models.Q(('secret__regex', '^whsec_[A-Za-z0-9+/]{32,86}={0,2}$')), name='subscription_has_a_secret'), models.CheckConstraint(condition=models.Q(models.Q(('previous_secret', ''), ('previous_secret_until__isnull', True)), models.Q(models.Q(('previous_secret', ''), _negated=True), ('previous_secret_until__isnull', False)), _connector='OR'), name='subscription_previous_secret_ends'), models.CheckConstraint(condition=models.Q(models.Q(('disabled_at__isnull', True), ('disabled_reason', '')), models.Q(('disabled_at__isnull', False), models.Q(('disabled_reason', ''), _negated=True)), _connector='OR'), name='subscription_disabled_says_why'), models.CheckConstraint(condition=models.Q(models.Q(('failing_since__isnull', True), ('failures', 0)), models.Q(('failing_since__isnull', False), ('failures__gt', 0)), _connector='OR'), name='subscription_failing_has_a_time'), models.CheckConstraint(condition=models.Q(('disabled_by', ''), ('disabled_at__isnull', False), _connector='OR'), name='subscription_disabled_by_somebody')],
                'triggers': [pgtrigger.compiler.Trigger(name='subscription_frozen', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."id" IS DISTINCT FROM (NEW."id") OR OLD."address" IS DISTINCT FROM (NEW."address") OR OLD."account_id" IS DISTINCT FROM (NEW."account_id") OR OLD."api_key_id" IS DISTINCT FROM (NEW."api_key_id") OR OLD."created_at" IS DISTINCT FROM (NEW."created_at") OR OLD."created_by" IS DISTINCT FROM (NEW."created_by"))', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='89d8f99760054500f038018914b3348e466b4761', operation='UPDATE', pgid='pgtrigger_subscription_frozen_27e18', table='operations_subscription', when='BEFORE')), pgtrigger.compiler.Trigger(name='subscription_no_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot delete rows from % table', TG_TABLE_NAME;", hash='aae07fcf49451beb00b9ee9e41cf4f6432db4c94', operation='DELETE', pgid='pgtrigger_subscription_no_delete_72fc2', table='operations_subscription', when='BEFORE')), pgtrigger.compiler.Trigger(name='subscription_no_truncate', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'Rows of % are never removed.', TG_TABLE_NAME;", hash='41646609afd1de1ba35277ecab97704061bdb645', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_subscription_no_truncate_4f338', table='operations_subscription', when='BEFORE'))],
            },
        ),
        migrations.CreateModel(
            name='Discrepancy',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('provider_total', models.BigIntegerField()),
                ('known_total', models.BigIntegerField()),
                ('opened_at', models.DateTimeField()),
                ('last_seen_at', models.DateTimeField()),
                ('closed_at', models.DateTimeField(blank=True, null=True)),
                ('outcome', models.CharField(blank=True, default='', max_length=16)),
                ('closed_by', models.CharField(blank=True, default='', max_length=255)),
                ('closed_by_name', models.CharField(blank=True, default='', max_length=255)),
                ('reason', models.TextField(blank=True, default='')),
                ('payment', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='discrepancies', to='operations.payment')),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('closed_at__isnull', True)), fields=['-opened_at', '-id'], name='discrepancy_open')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('closed_at__isnull', True)), fields=('payment',), name='discrepancy_one_open'), models.CheckConstraint(condition=models.Q(('provider_total__gt', models.F('known_total'))), name='discrepancy_is_more'), models.CheckConstraint(condition=models.Q(models.Q(('closed_at__isnull', True), ('outcome', '')), models.Q(('closed_at__isnull', False), ('outcome', 'explained')), models.Q(('closed_at__isnull', False), ('outcome', 'outside'), models.Q(('closed_by', ''), _negated=True), models.Q(('reason', ''), _negated=True)), _connector='OR'), name='discrepancy_closing_is_whole')],
                'triggers': [pgtrigger.compiler.Trigger(name='discrepancy_closed_once', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."closed_at" IS NOT NULL)', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='8d045b7b5da5a69b50ebfab5002d3e9f5c199453', operation='UPDATE', pgid='pgtrigger_discrepancy_closed_once_0a87b', table='operations_discrepancy', when='BEFORE')), pgtrigger.compiler.Trigger(name='discrepancy_frozen', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."id" IS DISTINCT FROM (NEW."id") OR OLD."payment_id" IS DISTINCT FROM (NEW."payment_id") OR OLD."opened_at" IS DISTINCT FROM (NEW."opened_at"))', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='6d5ed8a8b37b1258d0dcc9a5dbe2d12117d82359', operation='UPDATE', pgid='pgtrigger_discrepancy_frozen_72926', table='operations_discrepancy', when='BEFORE')), pgtrigger.compiler.Trigger(name='discrepancy_no_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot delete rows from % table', TG_TABLE_NAME;", hash='8b6874b82dafaf8528df5499691ef88ebc020990', operation='DELETE', pgid='pgtrigger_discrepancy_no_delete_ec436', table='operations_discrepancy', when='BEFORE')), pgtrigger.compiler.Trigger(name='discrepancy_no_truncate', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'Rows of % are never removed.', TG_TABLE_NAME;", hash='d525c9a65d0f47743df3ab3f5635c252fa186541', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_discrepancy_no_truncate_8b114', table='operations_discrepancy', when='BEFORE'))],
            },
        ),
        migrations.CreateModel(
            name='Operation',
            fields=[
                ('id', models.UUIDField(primary_key=True, serialize=False)),
                ('group', models.UUIDField(blank=True, null=True)),
                ('kind', models.CharField(default='refund', max_length=16)),
                ('order_id', models.CharField(max_length=255)),
                ('reference', models.CharField(blank=True, default='', max_length=255)),
                ('customer_account', models.CharField(blank=True, default='', max_length=255)),
                ('amount', models.BigIntegerField()),
                ('currency', models.CharField(max_length=3)),
                ('reason', models.CharField(blank=True, default='', max_length=500)),
                ('input_hash', models.CharField(max_length=64)),
                ('environment', models.CharField(max_length=64)),
                ('endpoint', models.CharField(max_length=64)),
                ('idempotency_key', models.CharField(max_length=255)),
                ('parameters', models.JSONField()),
                ('created_at', models.DateTimeField()),
                ('status', models.CharField(default=operations.domain.statuses.Status['OPEN'], max_length=16)),
                ('unknown_reason', models.CharField(blank=True, default='', max_length=32)),
                ('attention', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=32), blank=True, default=list, size=None)),
                ('failure_code', models.CharField(blank=True, default='', max_length=100)),
                ('failure_message', models.CharField(blank=True, default='', max_length=500)),
                ('provider_object_id', models.CharField(blank=True, default='', max_length=255)),
                ('provider_status', models.CharField(blank=True, default='', max_length=64)),
                ('attempts_made', models.PositiveIntegerField(default=0)),
                ('lookups_made', models.PositiveIntegerField(default=0)),
                ('first_sent_at', models.DateTimeField(blank=True, null=True)),
                ('last_sent_at', models.DateTimeField(blank=True, null=True)),
                ('key_window_closes_at', models.DateTimeField(blank=True, null=True)),
                ('next_send_at', models.DateTimeField(blank=True, null=True)),
                ('next_check_at', models.DateTimeField(blank=True, null=True)),
                ('needs_person_since', models.DateTimeField(blank=True, null=True)),
                ('settled_at', models.DateTimeField(blank=True, null=True)),
                ('lease_owner', models.CharField(blank=True, default='', max_length=128)),
                ('lease_expires_at', models.DateTimeField(blank=True, null=True)),
                ('revision', models.PositiveIntegerField(default=1)),
                ('account', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='operations', to='operations.account')),
                ('opened_by', models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='operations.apikey')),
                ('reissue_of', models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='reissues', to='operations.operation')),
                ('payment', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='operations', to='operations.payment')),
            ],
            options={
                'indexes': [models.Index(models.OrderBy(models.F('key_window_closes_at'), nulls_last=True), models.OrderBy(models.F('amount'), descending=True), models.OrderBy(models.F('id')), condition=models.Q(('status', operations.domain.statuses.Status['UNKNOWN']), models.Q(('attention', []), _negated=True), _connector='OR'), name='operation_queue'), models.Index(condition=models.Q(('status', operations.domain.statuses.Status['UNKNOWN'])), fields=['needs_person_since'], name='operation_unknown_since'), models.Index(condition=models.Q(('lease_expires_at__isnull', False)), fields=['lease_expires_at'], name='operation_leases'), models.Index(condition=models.Q(('status', operations.domain.statuses.Status['UNKNOWN'])), fields=['account', 'opened_by', 'customer_account'], name='operation_exposure'), models.Index(condition=models.Q(('group__isnull', False)), fields=['group'], name='operation_by_group'), models.Index(fields=['-created_at', '-id'], name='operation_by_age'), models.Index(fields=['order_id', 'reference'], name='operation_identity'), models.Index(condition=models.Q(('reissue_of__isnull', False)), fields=['reissue_of'], name='operation_by_reissued'), django.contrib.postgres.indexes.GinIndex(condition=models.Q(('attention', []), _negated=True), fields=['attention'], name='operation_by_attention'), models.Index(condition=models.Q(('next_check_at__isnull', False)), fields=['next_check_at'], name='operation_due')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('status__in', [operations.domain.statuses.Status['OPEN'], operations.domain.statuses.Status['PROCESSING'], operations.domain.statuses.Status['UNKNOWN']])), fields=('account', 'order_id', 'reference'), name='operation_one_unresolved'), models.CheckConstraint(condition=models.Q(('status__in', [operations.domain.statuses.Status['FAILED'], operations.domain.statuses.Status['OPEN'], operations.domain.statuses.Status['PROCESSING'], operations.domain.statuses.Status['SUCCEEDED'], operations.domain.statuses.Status['UNKNOWN']])), name='operation_status_known'), models.UniqueConstraint(fields=('idempotency_key', 'account'), name='operation_key_once'), models.UniqueConstraint(condition=models.Q(('provider_object_id', ''), _negated=True), fields=('provider_object_id', 'account'), name='operation_one_provider_object')],
                'triggers': [pgtrigger.compiler.Trigger(name='operation_no_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot delete rows from % table', TG_TABLE_NAME;", hash='bc78efed46ddaaf51229726ff2dab6be86208370', operation='DELETE', pgid='pgtrigger_operation_no_delete_d6ede', table='operations_operation', when='BEFORE')), pgtrigger.compiler.Trigger(name='operation_no_truncate', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'Rows of % are never removed.', TG_TABLE_NAME;", hash='c1c6b75a83e33ae59cd64ef25d26078ac6049d10', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_operation_no_truncate_7e2fb', table='operations_operation', when='BEFORE')), pgtrigger.compiler.Trigger(name='operation_guard', sql=operations.models.triggers.AlwaysSql(declare='DECLARE broken text;', func='\n            IF TG_OP = \'INSERT\' THEN\n                broken := CASE WHEN NEW.status <> \'open\' THEN \'operation_starts_open\' WHEN NOT (NEW.idempotency_key <> \'\') THEN \'operation_has_a_key\' WHEN NOT (NEW.amount > 0) THEN \'operation_amount_positive\' WHEN NOT (NEW.currency ~ \'^[a-z]{3}$\') THEN \'operation_currency_code\' WHEN NOT (CASE NEW.status WHEN \'unknown\' THEN NEW."unknown_reason" IN (\'budget_spent\', \'deadline_passed\', \'interrupted\', \'key_retention_unclear\', \'key_window_closed\', \'server_error\', \'unreadable_answer\', \'unsafe_refusal\') ELSE NEW.unknown_reason = \'\' END) THEN \'operation_unknown_has_a_reason\' WHEN NOT (NEW.status <> \'succeeded\' OR NEW.provider_object_id <> \'\') THEN \'operation_success_names_a_refund\' WHEN NOT ((NEW."status" IN (\'failed\', \'succeeded\') AND NEW.settled_at IS NOT NULL) OR (NEW."status" IN (\'open\', \'processing\', \'unknown\') AND NEW.settled_at IS NULL)) THEN \'operation_settled_has_a_time\' WHEN NOT ((NEW.lease_owner = \'\') = (NEW.lease_expires_at IS NULL)) THEN \'operation_lease_is_whole\' WHEN NOT (NEW.attention <@ ARRAY[\'configuration\', \'conflict\', \'disputed\', \'duplicate_refund\', \'failed_after_success\', \'mismatch\']::varchar[]) THEN \'operation_attention_known\' END;\n                IF broken IS NULL AND (true) THEN\n                    IF EXISTS (\n            SELECT 1 FROM operations_payment AS payment\n            WHERE payment.id = NEW.payment_id\n              AND (payment.account_id <> NEW.account_id OR payment.currency <> NEW.currency)) THEN broken := \'operation_fits_its_payment\'; END IF;\n                END IF;\n            ELSE\n                broken := CASE WHEN NEW.revision <> OLD.revision + 1 AND (NEW.revision <> OLD.revision OR (to_jsonb(NEW) - ARRAY[\'lookups_made\', \'next_check_at\', \'next_send_at\']) <> (to_jsonb(OLD) - ARRAY[\'lookups_made\', \'next_check_at\', \'next_send_at\'])) THEN \'operation_revision_counts\' WHEN NEW.status <> OLD.status AND (OLD.status, NEW.status) NOT IN ((\'open\', \'failed\'), (\'open\', \'processing\'), (\'open\', \'succeeded\'), (\'open\', \'unknown\'), (\'processing\', \'failed\'), (\'processing\', \'succeeded\'), (\'succeeded\', \'failed\'), (\'unknown\', \'failed\'), (\'unknown\', \'processing\'), (\'unknown\', \'succeeded\')) THEN \'operation_status_moves\' WHEN (NEW."id", NEW."account_id", NEW."payment_id", NEW."opened_by_id", NEW."group", NEW."reissue_of_id", NEW."kind", NEW."order_id", NEW."reference", NEW."customer_account", NEW."amount", NEW."currency", NEW."reason", NEW."input_hash", NEW."environment", NEW."endpoint", NEW."idempotency_key", NEW."parameters", NEW."created_at") IS DISTINCT FROM (OLD."id", OLD."account_id", OLD."payment_id", OLD."opened_by_id", OLD."group", OLD."reissue_of_id", OLD."kind", OLD."order_id", OLD."reference", OLD."customer_account", OLD."amount", OLD."currency", OLD."reason", OLD."input_hash", OLD."environment", OLD."endpoint", OLD."idempotency_key", OLD."parameters", OLD."created_at") THEN \'operation_frozen\' WHEN OLD.provider_object_id <> \'\' AND NEW.provider_object_id <> OLD.provider_object_id THEN \'operation_refund_written_once\' WHEN NEW.attempts_made < OLD.attempts_made OR NEW.lookups_made < OLD.lookups_made THEN \'operation_counts_kept\' WHEN OLD.first_sent_at IS NOT NULL AND NEW.first_sent_at IS DISTINCT FROM OLD.first_sent_at THEN \'operation_first_send_kept\' WHEN OLD.key_window_closes_at IS NOT NULL AND (NEW.key_window_closes_at IS NULL OR NEW.key_window_closes_at > OLD.key_window_closes_at) THEN \'operation_key_window_kept\' WHEN NOT (CASE NEW.status WHEN \'unknown\' THEN NEW."unknown_reason" IN (\'budget_spent\', \'deadline_passed\', \'interrupted\', \'key_retention_unclear\', \'key_window_closed\', \'server_error\', \'unreadable_answer\', \'unsafe_refusal\') ELSE NEW.unknown_reason = \'\' END) THEN \'operation_unknown_has_a_reason\' WHEN NOT (NEW.status <> \'succeeded\' OR NEW.provider_object_id <> \'\') THEN \'operation_success_names_a_refund\' WHEN NOT ((NEW."status" IN (\'failed\', \'succeeded\') AND NEW.settled_at IS NOT NULL) OR (NEW."status" IN (\'open\', \'processing\', \'unknown\') AND NEW.settled_at IS NULL)) THEN \'operation_settled_has_a_time\' WHEN NOT ((NEW.lease_owner = \'\') = (NEW.lease_expires_at IS NULL)) THEN \'operation_lease_is_whole\' WHEN NOT (NEW.attention <@ ARRAY[\'configuration\', \'conflict\', \'disputed\', \'duplicate_refund\', \'failed_after_success\', \'mismatch\']::varchar[]) THEN \'operation_attention_known\' END;\n                IF broken IS NULL AND (NOT (OLD.attention <@ NEW.attention)) THEN\n                    IF EXISTS (\n            SELECT 1 FROM operations_flag AS standing\n            WHERE standing.operation_id = NEW.id\n              AND standing.cleared_at IS NULL\n              AND standing.attention <> ALL (NEW.attention)) THEN broken := \'operation_flags_go_by_people\'; END IF;\n                END IF;\n                IF broken IS NULL AND (OLD.lease_owner <> \'\' AND NEW.lease_owner <> OLD.lease_owner) THEN\n                    IF EXISTS (\n            SELECT 1 FROM operations_attempt WHERE operation_id = NEW.id AND outcome = \'\') THEN broken := \'operation_lease_covers_the_send\'; END IF;\n                END IF;\n            END IF;\n            IF broken IS NOT NULL THEN\n                RAISE EXCEPTION \'This row of % is refused by %.\', TG_TABLE_NAME, broken\n                USING CONSTRAINT = broken, TABLE = TG_TABLE_NAME, ERRCODE = CASE\n                    WHEN broken = ANY (ARRAY[\'operation_amount_positive\', \'operation_attention_known\', \'operation_currency_code\', \'operation_has_a_key\', \'operation_lease_is_whole\', \'operation_settled_has_a_time\', \'operation_success_names_a_refund\', \'operation_unknown_has_a_reason\']::text[]) THEN \'check_violation\'\n                    ELSE \'raise_exception\' END;\n            END IF;\n            RETURN NEW;\n            ', hash='ea2893ae232594878fb3f0e7050b2ab31c03398c', operation='INSERT OR UPDATE', pgid='pgtrigger_operation_guard_d61cc', table='operations_operation', when='BEFORE'))],
            },
        ),
        migrations.CreateModel(
            name='ReportPiece',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('data', models.BinaryField()),
                ('report', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='pieces', to='operations.reportfile')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('report', 'number'), name='report_piece_once')],
                'triggers': [pgtrigger.compiler.Trigger(name='report_piece_no_update', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='ca4e0151f19796453f7830083e9796ccf22b3202', operation='UPDATE', pgid='pgtrigger_report_piece_no_update_8e148', table='operations_reportpiece', when='BEFORE'))],
            },
        ),
        migrations.CreateModel(
            name='ReportRow',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('line', models.PositiveIntegerField()),
                ('refund_id', models.CharField(blank=True, default='', max_length=255)),
                ('charge', models.CharField(blank=True, default='', max_length=255)),
                ('payment_intent', models.CharField(blank=True, default='', max_length=255)),
                ('amount', models.BigIntegerField(blank=True, null=True)),
                ('currency', models.CharField(blank=True, default='', max_length=3)),
                ('status', models.CharField(blank=True, default='', max_length=64)),
                ('created', models.BigIntegerField(default=0)),
                ('failure_reason', models.CharField(blank=True, default='', max_length=500)),
                ('metadata', models.JSONField(default=dict)),
                ('preview', models.CharField(max_length=16)),
                ('problem', models.CharField(blank=True, default='', max_length=500)),
                ('result', models.CharField(blank=True, default='', max_length=32)),
                ('operation_id', models.UUIDField(blank=True, null=True)),
                ('applied_at', models.DateTimeField(blank=True, null=True)),
                ('report', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='lines', to='operations.reportfile')),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('result', '')), fields=['report', 'line'], name='report_row_waiting'), models.Index(condition=models.Q(('preview__in', ['bad', 'contradicts'])), fields=['report', 'line'], name='report_row_to_look_at')],
                'constraints': [models.UniqueConstraint(fields=('report', 'line'), name='report_row_once'), models.CheckConstraint(condition=models.Q(('preview__in', ['matches', 'nothing_new', 'contradicts', 'unknown', 'bad'])), name='report_row_preview_known'), models.CheckConstraint(condition=models.Q(('result__in', ['', 'applied', 'no_change', 'contradicts', 'needs_lookup', 'kept', 'unmatched', 'other_environment', 'failed', 'bad'])), name='report_row_result_known'), models.CheckConstraint(condition=models.Q(models.Q(('preview', 'bad'), ('result', 'bad'), models.Q(('problem', ''), _negated=True)), models.Q(models.Q(('preview', 'bad'), _negated=True), models.Q(('result', 'bad'), _negated=True), models.Q(('refund_id', ''), _negated=True), ('amount__gt', 0)), _connector='OR'), name='report_row_bad_or_whole')],
                'triggers': [pgtrigger.compiler.Trigger(name='report_row_frozen', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."id" IS DISTINCT FROM (NEW."id") OR OLD."report_id" IS DISTINCT FROM (NEW."report_id") OR OLD."line" IS DISTINCT FROM (NEW."line") OR OLD."refund_id" IS DISTINCT FROM (NEW."refund_id") OR OLD."charge" IS DISTINCT FROM (NEW."charge") OR OLD."payment_intent" IS DISTINCT FROM (NEW."payment_intent") OR OLD."amount" IS DISTINCT FROM (NEW."amount") OR OLD."currency" IS DISTINCT FROM (NEW."currency") OR OLD."status" IS DISTINCT FROM (NEW."status") OR OLD."created" IS DISTINCT FROM (NEW."created") OR OLD."failure_reason" IS DISTINCT FROM (NEW."failure_reason") OR OLD."metadata" IS DISTINCT FROM (NEW."metadata") OR OLD."preview" IS DISTINCT FROM (NEW."preview"))', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='4f5c3eed9584210b8fe3b1ac12ff7cb95421961e', operation='UPDATE', pgid='pgtrigger_report_row_frozen_693f0', table='operations_reportrow', when='BEFORE')), pgtrigger.compiler.Trigger(name='report_row_applied_once', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."result" NOT IN (\'\', \'failed\') AND NEW."result" <> OLD."result")', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='db37c24611cbfa1b9aa0ca925ea5224059851218', operation='UPDATE', pgid='pgtrigger_report_row_applied_once_7fe12', table='operations_reportrow', when='BEFORE')), pgtrigger.compiler.Trigger(name='report_row_no_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot delete rows from % table', TG_TABLE_NAME;", hash='c771243df05ef36d9c0f43e196ef32d8d52fc22c', operation='DELETE', pgid='pgtrigger_report_row_no_delete_2a1eb', table='operations_reportrow', when='BEFORE')), pgtrigger.compiler.Trigger(name='report_row_no_truncate', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'Rows of % are never removed.', TG_TABLE_NAME;", hash='978580a6143c9b81cc4b4c46f4918272b717c60e', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_report_row_no_truncate_3bdfb', table='operations_reportrow', when='BEFORE'))],
            },
        ),
        migrations.CreateModel(
            name='Attempt',
            fields=[
                ('id', models.UUIDField(primary_key=True, serialize=False)),
                ('number', models.PositiveIntegerField()),
                ('idempotency_key', models.CharField(max_length=255)),
                ('parameters', models.JSONField()),
                ('fence', models.CharField(max_length=128)),
                ('started_at', models.DateTimeField()),
                ('outcome', models.CharField(blank=True, default='', max_length=16)),
                ('doubt', models.CharField(blank=True, default='', max_length=16)),
                ('attention', models.CharField(blank=True, default='', max_length=32)),
                ('answer_kind', models.CharField(blank=True, default='', max_length=16)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('duration_ms', models.PositiveIntegerField(blank=True, null=True)),
                ('http_status', models.PositiveSmallIntegerField(blank=True, null=True)),
                ('provider_request_id', models.CharField(blank=True, default='', max_length=255)),
                ('replayed', models.BooleanField(default=False)),
                ('should_retry', models.BooleanField(blank=True, null=True)),
                ('retry_after_s', models.FloatField(blank=True, null=True)),
                ('error_type', models.CharField(blank=True, default='', max_length=100)),
                ('error_code', models.CharField(blank=True, default='', max_length=100)),
                ('message', models.CharField(blank=True, default='', max_length=500)),
                ('body', models.JSONField(blank=True, null=True)),
                ('refund', models.JSONField(blank=True, null=True)),
                ('operation', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='attempts', to='operations.operation')),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('provider_request_id', ''), _negated=True), fields=['provider_request_id'], name='attempt_by_request_id')],
                'constraints': [models.UniqueConstraint(fields=('operation', 'number'), name='attempt_number_once'), models.UniqueConstraint(condition=models.Q(('outcome', '')), fields=('operation',), name='attempt_one_in_flight')],
                'triggers': [pgtrigger.compiler.Trigger(name='attempt_no_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot delete rows from % table', TG_TABLE_NAME;", hash='fe580cb55b5c63f1a367b60557023810aae29619', operation='DELETE', pgid='pgtrigger_attempt_no_delete_36495', table='operations_attempt', when='BEFORE')), pgtrigger.compiler.Trigger(name='attempt_no_truncate', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'Rows of % are never removed.', TG_TABLE_NAME;", hash='af3ba615b313491c1f0f215dab4eab3d363f0b2b', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_attempt_no_truncate_c151a', table='operations_attempt', when='BEFORE')), pgtrigger.compiler.Trigger(name='attempt_guard', sql=operations.models.triggers.AlwaysSql(declare='DECLARE broken text;', func='\n            IF TG_OP = \'INSERT\' THEN\n                broken := CASE WHEN NEW.outcome <> \'\' THEN \'attempt_starts_in_flight\' WHEN NOT (NEW."outcome" IN (\'\', \'accepted\', \'indeterminate\', \'not_executed\', \'refused\')) THEN \'attempt_outcome_known\' WHEN NOT (NEW."doubt" IN (\'\', \'frozen\', \'interrupted\', \'unreadable\', \'unsafe_refusal\')) THEN \'attempt_doubt_known\' WHEN NOT (NEW."answer_kind" IN (\'\', \'connection_lost\', \'interrupted\', \'not_sent\', \'response\', \'unreadable\')) THEN \'attempt_answer_known\' WHEN NOT (CASE NEW.outcome WHEN \'\' THEN\n            NEW.doubt = \'\' AND NEW.attention = \'\' AND NEW.answer_kind = \'\'\n            AND NEW.finished_at IS NULL AND NEW.duration_ms IS NULL AND NEW.http_status IS NULL\n            AND NEW.provider_request_id = \'\' AND NOT NEW.replayed AND NEW.should_retry IS NULL\n            AND NEW.retry_after_s IS NULL AND NEW.error_type = \'\' AND NEW.error_code = \'\'\n            AND NEW.message = \'\' AND NEW.body IS NULL AND NEW.refund IS NULL\n        ELSE NEW.answer_kind <> \'\' AND NEW.finished_at IS NOT NULL END) THEN \'attempt_finished_is_whole\' WHEN NOT (NEW.outcome <> \'accepted\' OR NEW.refund IS NOT NULL) THEN \'attempt_accepted_keeps_the_refund\' END;\n                IF broken IS NULL AND (true) THEN\n                    IF (\n            SELECT parent.status <> \'open\'\n                OR parent.lease_owner = \'\'\n                OR parent.lease_owner <> NEW.fence\n                OR parent.attempts_made <> NEW.number\n                OR parent.idempotency_key <> NEW.idempotency_key\n                OR parent.parameters <> NEW.parameters\n                OR (NEW.number > 1 AND NEW.started_at >= parent.key_window_closes_at)\n            FROM operations_operation AS parent\n            WHERE parent.id = NEW.operation_id FOR NO KEY UPDATE) THEN broken := \'attempt_fits_its_operation\'; END IF;\n                END IF;\n            ELSE\n                broken := CASE WHEN OLD.outcome <> \'\' THEN \'attempt_written_once\' WHEN (NEW."id", NEW."operation_id", NEW."number", NEW."idempotency_key", NEW."parameters", NEW."fence", NEW."started_at") IS DISTINCT FROM (OLD."id", OLD."operation_id", OLD."number", OLD."idempotency_key", OLD."parameters", OLD."fence", OLD."started_at") THEN \'attempt_frozen\' WHEN NOT (NEW."outcome" IN (\'\', \'accepted\', \'indeterminate\', \'not_executed\', \'refused\')) THEN \'attempt_outcome_known\' WHEN NOT (NEW."doubt" IN (\'\', \'frozen\', \'interrupted\', \'unreadable\', \'unsafe_refusal\')) THEN \'attempt_doubt_known\' WHEN NOT (NEW."answer_kind" IN (\'\', \'connection_lost\', \'interrupted\', \'not_sent\', \'response\', \'unreadable\')) THEN \'attempt_answer_known\' WHEN NOT (CASE NEW.outcome WHEN \'\' THEN\n            NEW.doubt = \'\' AND NEW.attention = \'\' AND NEW.answer_kind = \'\'\n            AND NEW.finished_at IS NULL AND NEW.duration_ms IS NULL AND NEW.http_status IS NULL\n            AND NEW.provider_request_id = \'\' AND NOT NEW.replayed AND NEW.should_retry IS NULL\n            AND NEW.retry_after_s IS NULL AND NEW.error_type = \'\' AND NEW.error_code = \'\'\n            AND NEW.message = \'\' AND NEW.body IS NULL AND NEW.refund IS NULL\n        ELSE NEW.answer_kind <> \'\' AND NEW.finished_at IS NOT NULL END) THEN \'attempt_finished_is_whole\' WHEN NOT (NEW.outcome <> \'accepted\' OR NEW.refund IS NOT NULL) THEN \'attempt_accepted_keeps_the_refund\' END;\n            END IF;\n            IF broken IS NOT NULL THEN\n                RAISE EXCEPTION \'This row of % is refused by %.\', TG_TABLE_NAME, broken\n                USING CONSTRAINT = broken, TABLE = TG_TABLE_NAME, ERRCODE = CASE\n                    WHEN broken = ANY (ARRAY[\'attempt_accepted_keeps_the_refund\', \'attempt_answer_known\', \'attempt_doubt_known\', \'attempt_finished_is_whole\', \'attempt_outcome_known\']::text[]) THEN \'check_violation\'\n                    ELSE \'raise_exception\' END;\n            END IF;\n            RETURN NEW;\n            ', hash='395102b6be14c1cf9e9dc64ecfd52a2955099a4c', operation='INSERT OR UPDATE', pgid='pgtrigger_attempt_guard_af22e', table='operations_attempt', when='BEFORE'))],
            },
        ),
        migrations.CreateModel(
            name='Delivery',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('message_id', models.CharField(max_length=64)),
                ('type', models.CharField(max_length=32)),
                ('revision', models.PositiveIntegerField()),
                ('occurred_at', models.DateTimeField()),
                ('body', models.TextField()),
                ('state', models.CharField(default='waiting', max_length=16)),
                ('next_try_at', models.DateTimeField()),
                ('claimed_until', models.DateTimeField(blank=True, null=True)),
                ('tries', models.PositiveIntegerField(default=0)),
                ('round_began', models.PositiveIntegerField(default=0)),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
                ('operation', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='deliveries', to='operations.operation')),
                ('subscription', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='deliveries', to='operations.subscription')),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('state', 'waiting')), fields=['subscription', 'next_try_at', 'id'], name='delivery_due'), models.Index(condition=models.Q(('state', 'waiting')), fields=['subscription', 'operation', 'id'], name='delivery_in_order'), models.Index(fields=['subscription', '-id'], name='delivery_by_subscription'), models.Index(fields=['operation', '-id'], name='delivery_by_operation'), models.Index(condition=models.Q(('state', 'failed')), fields=['-id'], name='delivery_failed'), models.Index(condition=models.Q(('state', 'waiting'), _negated=True), fields=['ended_at'], name='delivery_by_end'), models.Index(condition=models.Q(('claimed_until__isnull', False)), fields=['subscription', 'claimed_until'], name='delivery_claimed')],
                'constraints': [models.UniqueConstraint(fields=('subscription', 'operation', 'revision', 'type'), name='delivery_once_per_change'), models.UniqueConstraint(fields=('message_id', 'subscription'), name='delivery_message_once'), models.CheckConstraint(condition=models.Q(('type__in', ['refund.failed', 'refund.flagged', 'refund.reopened', 'refund.succeeded', 'refund.unknown'])), name='delivery_type_known'), models.CheckConstraint(condition=models.Q(('state__in', ['waiting', 'delivered', 'failed'])), name='delivery_state_known'), models.CheckConstraint(condition=models.Q(models.Q(('ended_at__isnull', True), ('state', 'waiting')), models.Q(models.Q(('state', 'waiting'), _negated=True), ('claimed_until__isnull', True), ('ended_at__isnull', False)), _connector='OR'), name='delivery_ended_has_a_time'), models.CheckConstraint(condition=models.Q(('round_began__lte', models.F('tries'))), name='delivery_rounds_follow_tries')],
                'triggers': [pgtrigger.compiler.Trigger(name='delivery_frozen', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."id" IS DISTINCT FROM (NEW."id") OR OLD."message_id" IS DISTINCT FROM (NEW."message_id") OR OLD."subscription_id" IS DISTINCT FROM (NEW."subscription_id") OR OLD."operation_id" IS DISTINCT FROM (NEW."operation_id") OR OLD."type" IS DISTINCT FROM (NEW."type") OR OLD."revision" IS DISTINCT FROM (NEW."revision") OR OLD."occurred_at" IS DISTINCT FROM (NEW."occurred_at") OR OLD."body" IS DISTINCT FROM (NEW."body"))', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='1d922a597f8d537966f844a9a66b868a766aa8dd', operation='UPDATE', pgid='pgtrigger_delivery_frozen_54fd3', table='operations_delivery', when='BEFORE')), pgtrigger.compiler.Trigger(name='delivery_tries_counted', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (NEW."tries" < OLD."tries")', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='0e204c2d5595a308b8985882cacdb523bdf623ad', operation='UPDATE', pgid='pgtrigger_delivery_tries_counted_0b879', table='operations_delivery', when='BEFORE')), pgtrigger.compiler.Trigger(name='delivery_waits_for_its_end', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."state" = \'waiting\')', func="RAISE EXCEPTION 'pgtrigger: Cannot delete rows from % table', TG_TABLE_NAME;", hash='4e930edb152d3296e5cd43eaa801d199387ee463', operation='DELETE', pgid='pgtrigger_delivery_waits_for_its_end_5c629', table='operations_delivery', when='BEFORE'))],
            },
        ),
        migrations.CreateModel(
            name='EventHandling',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('filed_at', models.DateTimeField()),
                ('provider_event_id', models.CharField(max_length=255)),
                ('event_type', models.CharField(max_length=255)),
                ('handling', models.CharField(max_length=32)),
                ('handled_at', models.DateTimeField()),
                ('attempts', models.PositiveIntegerField()),
                ('error', models.CharField(blank=True, default='', max_length=500)),
                ('event', models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='handlings', to='operations.webhookevent')),
                ('operation', models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='event_handlings', to='operations.operation')),
            ],
            options={
                'indexes': [models.Index(fields=['provider_event_id', 'event'], name='event_handling_by_event'), models.Index(condition=models.Q(('operation__isnull', False)), fields=['operation', 'handled_at'], name='event_handling_by_operation')],
                'constraints': [models.CheckConstraint(condition=models.Q(('handling__in', ['applied', 'no_change', 'needs_lookup', 'unmatched', 'not_ours', 'other_environment', 'wrong_mode', 'mismatch', 'ignored'])), name='event_handling_known'), models.CheckConstraint(condition=models.Q(('event__isnull', False)), name='event_handling_has_an_event')],
                'triggers': [pgtrigger.compiler.Trigger(name='event_handling_no_update', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='c0b6c5b2dbb210063117ef752aec2ca42e16d28a', operation='UPDATE', pgid='pgtrigger_event_handling_no_update_39b71', table='operations_eventhandling', when='BEFORE')), pgtrigger.compiler.Trigger(name='event_handling_no_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot delete rows from % table', TG_TABLE_NAME;", hash='b7ec6c5bf23d9a6fd75beb4e1be2a3ffce6c8884', operation='DELETE', pgid='pgtrigger_event_handling_no_delete_f1b77', table='operations_eventhandling', when='BEFORE')), pgtrigger.compiler.Trigger(name='event_handling_no_truncate', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'Rows of % are never removed.', TG_TABLE_NAME;", hash='769dbad8586dc114945ff3fca50299320063f75b', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_event_handling_no_truncate_8aa88', table='operations_eventhandling', when='BEFORE'))],
            },
        ),
        migrations.CreateModel(
            name='Proposal',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('outcome', models.CharField(max_length=16)),
                ('evidence_kind', models.CharField(max_length=32)),
                ('evidence_reference', models.CharField(blank=True, default='', max_length=255)),
                ('note', models.TextField()),
                ('reasons', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=32), size=None)),
                ('revision', models.PositiveIntegerField()),
                ('state', models.CharField(choices=[('waiting', 'Waiting for a second person'), ('approved', 'Approved'), ('rejected', 'Rejected'), ('void', 'Void: the operation changed')], default='waiting', max_length=16)),
                ('proposed_by', models.CharField(max_length=255)),
                ('proposed_by_name', models.CharField(max_length=255)),
                ('proposed_at', models.DateTimeField()),
                ('decided_by', models.CharField(blank=True, default='', max_length=255)),
                ('decided_by_name', models.CharField(blank=True, default='', max_length=255)),
                ('decided_at', models.DateTimeField(blank=True, null=True)),
                ('decision_note', models.TextField(blank=True, default='')),
                ('operation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='proposals', to='operations.operation')),
            ],
            options={
                'constraints': [models.UniqueConstraint(condition=models.Q(('state', 'waiting')), fields=('operation',), name='proposal_one_waiting'), models.CheckConstraint(condition=models.Q(('outcome__in', [operations.domain.closure.ClosingOutcome['FAILED'], operations.domain.closure.ClosingOutcome['SUCCEEDED']])), name='proposal_outcome_known'), models.CheckConstraint(condition=models.Q(('evidence_kind__in', [operations.domain.closure.EvidenceKind['ABSENT_IN_LOOKUP'], operations.domain.closure.EvidenceKind['BANK_STATEMENT'], operations.domain.closure.EvidenceKind['DASHBOARD'], operations.domain.closure.EvidenceKind['PROVIDER_REFUND'], operations.domain.closure.EvidenceKind['PROVIDER_SUPPORT']])), name='proposal_evidence_known'), models.CheckConstraint(condition=models.Q(models.Q(('decided_at__isnull', True), ('decided_by', ''), ('state', 'waiting')), models.Q(('decided_at__isnull', False), ('state', 'void')), models.Q(('state__in', ['approved', 'rejected']), models.Q(('decided_by', ''), _negated=True), ('decided_at__isnull', False)), _connector='OR'), name='proposal_decision_is_whole'), models.CheckConstraint(condition=models.Q(models.Q(('state', 'approved'), _negated=True), models.Q(('decided_by', models.F('proposed_by')), _negated=True), _connector='OR'), name='proposal_two_people')],
                'triggers': [pgtrigger.compiler.Trigger(name='proposal_starts_waiting', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (NOT (NEW."state" = \'waiting\'))', func="RAISE EXCEPTION 'pgtrigger: Cannot insert rows from % table', TG_TABLE_NAME;", hash='475260f3f933cd61fcd7e8f26a1dec9676b94122', operation='INSERT', pgid='pgtrigger_proposal_starts_waiting_5cd90', table='operations_proposal', when='BEFORE')), pgtrigger.compiler.Trigger(name='proposal_decided_once', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (NOT (OLD."state" = \'waiting\'))', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='3d172d50bc94e2123a752c9b707f1953ebcb3079', operation='UPDATE', pgid='pgtrigger_proposal_decided_once_4cff8', table='operations_proposal', when='BEFORE')), pgtrigger.compiler.Trigger(name='proposal_frozen', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."id" IS DISTINCT FROM (NEW."id") OR OLD."operation_id" IS DISTINCT FROM (NEW."operation_id") OR OLD."outcome" IS DISTINCT FROM (NEW."outcome") OR OLD."evidence_kind" IS DISTINCT FROM (NEW."evidence_kind") OR OLD."evidence_reference" IS DISTINCT FROM (NEW."evidence_reference") OR OLD."note" IS DISTINCT FROM (NEW."note") OR OLD."reasons" IS DISTINCT FROM (NEW."reasons") OR OLD."revision" IS DISTINCT FROM (NEW."revision") OR OLD."proposed_by" IS DISTINCT FROM (NEW."proposed_by") OR OLD."proposed_by_name" IS DISTINCT FROM (NEW."proposed_by_name") OR OLD."proposed_at" IS DISTINCT FROM (NEW."proposed_at"))', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='1c3d018cf6b424eb7005534398082b440c99bc88', operation='UPDATE', pgid='pgtrigger_proposal_frozen_1bd00', table='operations_proposal', when='BEFORE')), pgtrigger.compiler.Trigger(name='proposal_no_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot delete rows from % table', TG_TABLE_NAME;", hash='da3949e6c30df619a32fe0f188da2f578a15e2af', operation='DELETE', pgid='pgtrigger_proposal_no_delete_9e925', table='operations_proposal', when='BEFORE')), pgtrigger.compiler.Trigger(name='proposal_no_truncate', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'Rows of % are never removed.', TG_TABLE_NAME;", hash='4a9338b3461e124f1f3623f62d195dbffeb13593', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_proposal_no_truncate_173a3', table='operations_proposal', when='BEFORE'))],
            },
        ),
        migrations.CreateModel(
            name='ProviderRefund',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('provider_object_id', models.CharField(max_length=255)),
                ('status', models.CharField(max_length=64)),
                ('amount', models.BigIntegerField()),
                ('currency', models.CharField(max_length=3)),
                ('charge', models.CharField(blank=True, default='', max_length=255)),
                ('payment_intent', models.CharField(blank=True, default='', max_length=255)),
                ('metadata', models.JSONField(default=dict)),
                ('provider_created_at', models.DateTimeField(blank=True, null=True)),
                ('first_seen_at', models.DateTimeField()),
                ('last_seen_at', models.DateTimeField()),
                ('account', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='refunds', to='operations.account')),
                ('operation', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='refunds', to='operations.operation')),
                ('details', models.JSONField(default=dict)),
                ('status_since', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'indexes': [models.Index(fields=['account', 'charge'], name='provider_refund_by_charge'), models.Index(condition=models.Q(('operation__isnull', True)), fields=['-first_seen_at', '-id'], name='provider_refund_orphans')],
                'constraints': [models.UniqueConstraint(fields=('account', 'provider_object_id'), name='provider_refund_once'), models.CheckConstraint(condition=models.Q(('provider_object_id', ''), _negated=True), name='provider_refund_has_an_id')],
                'triggers': [pgtrigger.compiler.Trigger(name='provider_refund_frozen', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."id" IS DISTINCT FROM (NEW."id") OR OLD."account_id" IS DISTINCT FROM (NEW."account_id") OR OLD."provider_object_id" IS DISTINCT FROM (NEW."provider_object_id") OR OLD."amount" IS DISTINCT FROM (NEW."amount") OR OLD."currency" IS DISTINCT FROM (NEW."currency") OR OLD."first_seen_at" IS DISTINCT FROM (NEW."first_seen_at"))', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='059ffe3c2bd11d1bedfe3c873a52af1e7e6bedee', operation='UPDATE', pgid='pgtrigger_provider_refund_frozen_4c97c', table='operations_providerrefund', when='BEFORE')), pgtrigger.compiler.Trigger(name='provider_refund_owner_kept', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."operation_id" IS NOT NULL AND NEW."operation_id" IS DISTINCT FROM OLD."operation_id")', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='f6fc0e593af99997375ac5b24de45c85fbafd361', operation='UPDATE', pgid='pgtrigger_provider_refund_owner_kept_85c9d', table='operations_providerrefund', when='BEFORE')), pgtrigger.compiler.Trigger(name='provider_refund_no_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot delete rows from % table', TG_TABLE_NAME;", hash='70c2aba92fbac53a82fb286c6c79e41a239b243a', operation='DELETE', pgid='pgtrigger_provider_refund_no_delete_0db48', table='operations_providerrefund', when='BEFORE')), pgtrigger.compiler.Trigger(name='provider_refund_no_truncate', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'Rows of % are never removed.', TG_TABLE_NAME;", hash='7aa297f28bcd73a6e0020c3a370cddd153039d10', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_provider_refund_no_truncate_8f082', table='operations_providerrefund', when='BEFORE')), pgtrigger.compiler.Trigger(name='provider_refund_fits_its_operation', sql=operations.models.triggers.AlwaysSql(condition='WHEN (NEW."operation_id" IS NOT NULL)', func="\n            IF EXISTS (\n                SELECT 1 FROM operations_operation AS operation\n                WHERE operation.id = NEW.operation_id\n                  AND (operation.account_id, operation.amount, operation.currency)\n                      <> (NEW.account_id, NEW.amount, NEW.currency)\n            ) THEN\n                RAISE EXCEPTION 'Refund % differs from its operation.', NEW.provider_object_id;\n            END IF;\n            RETURN NEW;\n            ", hash='c7a4a272619eea6390892cd1318a12cec9c9cf99', operation='INSERT OR UPDATE OF "operation_id"', pgid='pgtrigger_provider_refund_fits_its_operation_34cef', table='operations_providerrefund', when='BEFORE'))],
            },
        ),
        migrations.CreateModel(
            name='Request',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tool_call_id', models.CharField(blank=True, default='', max_length=255)),
                ('agent_run_id', models.CharField(blank=True, default='', max_length=255)),
                ('input_hash', models.CharField(max_length=64)),
                ('payment_asked', models.CharField(max_length=255)),
                ('received_at', models.DateTimeField()),
                ('api_key', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='operations.apikey')),
                ('operation', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='requests', to='operations.operation')),
            ],
            options={
                'indexes': [models.Index(fields=['operation', 'received_at'], name='request_by_operation'), models.Index(condition=models.Q(('agent_run_id', ''), _negated=True), fields=['agent_run_id'], name='request_by_run')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('tool_call_id', ''), _negated=True), fields=('tool_call_id', 'agent_run_id', 'api_key'), name='request_tool_call_once', nulls_distinct=False)],
                'triggers': [pgtrigger.compiler.Trigger(name='request_no_update', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='45fba808ce7289e8e77b3f1b1203eb6ec3500edb', operation='UPDATE', pgid='pgtrigger_request_no_update_c9e6d', table='operations_request', when='BEFORE')), pgtrigger.compiler.Trigger(name='request_no_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot delete rows from % table', TG_TABLE_NAME;", hash='115980c17e84f571e63fe110d61e923cdfa630b6', operation='DELETE', pgid='pgtrigger_request_no_delete_e89e1', table='operations_request', when='BEFORE')), pgtrigger.compiler.Trigger(name='request_no_truncate', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'Rows of % are never removed.', TG_TABLE_NAME;", hash='fcac69cab8d51d488c18c63ac6fa10ed3193cb0a', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_request_no_truncate_a3824', table='operations_request', when='BEFORE'))],
            },
        ),
        migrations.CreateModel(
            name='RequestToken',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('customer_account', models.CharField(blank=True, default='', max_length=255)),
                ('kind', models.CharField(default='refund', max_length=16)),
                ('token', models.CharField(max_length=255)),
                ('created_at', models.DateTimeField()),
                ('account', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='operations.account')),
                ('operation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='tokens', to='operations.operation')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('token', 'customer_account', 'account', 'kind'), name='request_token_once')],
                'triggers': [pgtrigger.compiler.Trigger(name='request_token_no_update', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='d593b360d540184a01422f61362be76f054d2054', operation='UPDATE', pgid='pgtrigger_request_token_no_update_fb9bd', table='operations_requesttoken', when='BEFORE')), pgtrigger.compiler.Trigger(name='request_token_no_delete', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."created_at" > now() - interval \'1 day\')', func="RAISE EXCEPTION 'pgtrigger: Cannot delete rows from % table', TG_TABLE_NAME;", hash='43e23249097355e7006854736a80fec168fdf1b1', operation='DELETE', pgid='pgtrigger_request_token_no_delete_b1ec4', table='operations_requesttoken', when='BEFORE')), pgtrigger.compiler.Trigger(name='request_token_no_truncate', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'Rows of % are never removed.', TG_TABLE_NAME;", hash='c144917e67ab3b747bff16ff8e722817e1e1120f', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_request_token_no_truncate_d078d', table='operations_requesttoken', when='BEFORE'))],
            },
        ),
        migrations.CreateModel(
            name='DeliveryTry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('started_at', models.DateTimeField()),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('duration_ms', models.PositiveIntegerField(blank=True, null=True)),
                ('http_status', models.PositiveIntegerField(blank=True, null=True)),
                ('body', models.CharField(blank=True, default='', max_length=500)),
                ('error', models.CharField(blank=True, default='', max_length=500)),
                ('delivery', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='attempts', to='operations.delivery')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('delivery', 'number'), name='delivery_try_once'), models.CheckConstraint(condition=models.Q(models.Q(('duration_ms__isnull', True), ('error', ''), ('finished_at__isnull', True), ('http_status__isnull', True)), models.Q(('duration_ms__isnull', False), ('finished_at__isnull', False), models.Q(('http_status__isnull', False), models.Q(('error', ''), _negated=True), _connector='OR')), _connector='OR'), name='delivery_try_is_whole')],
                'triggers': [pgtrigger.compiler.Trigger(name='delivery_try_frozen', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."id" IS DISTINCT FROM (NEW."id") OR OLD."delivery_id" IS DISTINCT FROM (NEW."delivery_id") OR OLD."number" IS DISTINCT FROM (NEW."number") OR OLD."started_at" IS DISTINCT FROM (NEW."started_at"))', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='a02ff3494ed1cee3361339dd683634eee3ec0a4f', operation='UPDATE', pgid='pgtrigger_delivery_try_frozen_eff68', table='operations_deliverytry', when='BEFORE')), pgtrigger.compiler.Trigger(name='delivery_try_finished_once', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."finished_at" IS NOT NULL)', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='bc2cb30445e3601f97f4c9bdb4b894e08a2d5f58', operation='UPDATE', pgid='pgtrigger_delivery_try_finished_once_e0f76', table='operations_deliverytry', when='BEFORE'))],
            },
        ),
        migrations.CreateModel(
            name='Evidence',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('source', models.CharField(max_length=16)),
                ('provider_object_id', models.CharField(blank=True, default='', max_length=255)),
                ('provider_status', models.CharField(blank=True, default='', max_length=64)),
                ('amount', models.BigIntegerField(blank=True, null=True)),
                ('currency', models.CharField(blank=True, default='', max_length=3)),
                ('summary', models.CharField(max_length=500)),
                ('facts', models.JSONField(default=dict)),
                ('observed_at', models.DateTimeField()),
                ('recorded_at', models.DateTimeField()),
                ('actor_kind', models.CharField(max_length=16)),
                ('actor_name', models.CharField(max_length=255)),
                ('attempt', models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='operations.attempt')),
                ('operation', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='evidence', to='operations.operation')),
                ('event', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='operations.webhookevent')),
            ],
            options={
                'indexes': [models.Index(fields=['operation', 'recorded_at'], name='evidence_by_operation')],
                'constraints': [models.CheckConstraint(condition=models.Q(('source__in', ['answer', 'webhook', 'lookup', 'report_row', 'statement'])), name='evidence_source_known'), models.CheckConstraint(condition=models.Q(('actor_kind__in', [operations.domain.audit.ActorKind['API_KEY'], operations.domain.audit.ActorKind['COMMAND'], operations.domain.audit.ActorKind['JOB'], operations.domain.audit.ActorKind['PERSON'], operations.domain.audit.ActorKind['WEBHOOK']])), name='evidence_actor_known')],
                'triggers': [pgtrigger.compiler.Trigger(name='evidence_no_update', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='62dab564c6b74b3abbbdd6b65abca356599858a3', operation='UPDATE', pgid='pgtrigger_evidence_no_update_ba767', table='operations_evidence', when='BEFORE')), pgtrigger.compiler.Trigger(name='evidence_no_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot delete rows from % table', TG_TABLE_NAME;", hash='a2350fb242ad9868868a717ab87275160d11b0ef', operation='DELETE', pgid='pgtrigger_evidence_no_delete_bb16c', table='operations_evidence', when='BEFORE')), pgtrigger.compiler.Trigger(name='evidence_no_truncate', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'Rows of % are never removed.', TG_TABLE_NAME;", hash='4cb14856c922e0bd5fb91c36721e795275966310', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_evidence_no_truncate_bd68f', table='operations_evidence', when='BEFORE')), pgtrigger.compiler.Trigger(name='evidence_fits_its_attempt', sql=operations.models.triggers.AlwaysSql(condition='WHEN (NEW."attempt_id" IS NOT NULL)', func="\n            IF EXISTS (\n                SELECT 1 FROM operations_attempt AS attempt\n                WHERE attempt.id = NEW.attempt_id\n                  AND attempt.operation_id <> NEW.operation_id\n            ) THEN\n                RAISE EXCEPTION 'This attempt is another operation''s.';\n            END IF;\n            RETURN NEW;\n            ", hash='dcaae67521443a81c8ef989abb53d340a93c7532', operation='INSERT', pgid='pgtrigger_evidence_fits_its_attempt_bc48a', table='operations_evidence', when='BEFORE'))],
            },
        ),
        migrations.CreateModel(
            name='MadeOutside',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('reason', models.TextField()),
                ('found_by', models.CharField(max_length=255)),
                ('found_by_name', models.CharField(max_length=255)),
                ('found_at', models.DateTimeField()),
                ('refund', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='made_outside', to='operations.providerrefund')),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('reason', ''), _negated=True), models.Q(('found_by', ''), _negated=True)), name='made_outside_says_who_and_why')],
                'triggers': [pgtrigger.compiler.Trigger(name='made_outside_no_update', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='0edf1f8e1c2954be545e08231b9c428a373cda67', operation='UPDATE', pgid='pgtrigger_made_outside_no_update_cbb00', table='operations_madeoutside', when='BEFORE')), pgtrigger.compiler.Trigger(name='made_outside_no_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot delete rows from % table', TG_TABLE_NAME;", hash='d33a078f1ce8c54b069fee8ea1d6f718a5efee03', operation='DELETE', pgid='pgtrigger_made_outside_no_delete_521ed', table='operations_madeoutside', when='BEFORE')), pgtrigger.compiler.Trigger(name='made_outside_no_truncate', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'Rows of % are never removed.', TG_TABLE_NAME;", hash='e1f211c781d7ecc84b044a7a191a505d2fed2fac', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_made_outside_no_truncate_216cb', table='operations_madeoutside', when='BEFORE'))],
            },
        ),
        migrations.CreateModel(
            name='RefundReport',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('source', models.CharField(max_length=16)),
                ('told_by', models.CharField(max_length=255)),
                ('status', models.CharField(max_length=64)),
                ('amount', models.BigIntegerField()),
                ('currency', models.CharField(max_length=3)),
                ('details', models.JSONField(default=dict)),
                ('told_at', models.DateTimeField()),
                ('recorded_at', models.DateTimeField()),
                ('fingerprint', models.CharField(max_length=32)),
                ('refund', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='reports', to='operations.providerrefund')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('refund', 'fingerprint'), name='refund_report_once'), models.CheckConstraint(condition=models.Q(('source__in', ['answer', 'webhook', 'lookup', 'report_row', 'statement'])), name='refund_report_source_known')],
                'triggers': [pgtrigger.compiler.Trigger(name='refund_report_no_update', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='c9d47966c994837359bdf2c8ad27e755c705a608', operation='UPDATE', pgid='pgtrigger_refund_report_no_update_70c48', table='operations_refundreport', when='BEFORE')), pgtrigger.compiler.Trigger(name='refund_report_no_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot delete rows from % table', TG_TABLE_NAME;", hash='e2a63ded931220230ef027e0ed51725895801593', operation='DELETE', pgid='pgtrigger_refund_report_no_delete_5f99a', table='operations_refundreport', when='BEFORE')), pgtrigger.compiler.Trigger(name='refund_report_no_truncate', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'Rows of % are never removed.', TG_TABLE_NAME;", hash='f2723ce3f53615620b84222dd97932aa670944d0', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_refund_report_no_truncate_348c1', table='operations_refundreport', when='BEFORE'))],
            },
        ),
        migrations.CreateModel(
            name='Flag',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('attention', models.CharField(max_length=32)),
                ('fact', models.CharField(max_length=400)),
                ('sides', models.JSONField()),
                ('raised_at', models.DateTimeField()),
                ('cleared_at', models.DateTimeField(blank=True, null=True)),
                ('cleared_by', models.CharField(blank=True, default='', max_length=255)),
                ('cleared_by_name', models.CharField(blank=True, default='', max_length=255)),
                ('clear_reason', models.TextField(blank=True, default='')),
                ('evidence', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='operations.evidence')),
                ('operation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='flags', to='operations.operation')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('operation', 'attention', 'fact'), name='flag_once_per_fact'), models.CheckConstraint(condition=models.Q(('attention__in', [operations.domain.statuses.Attention['CONFIGURATION'], operations.domain.statuses.Attention['CONFLICT'], operations.domain.statuses.Attention['DISPUTED'], operations.domain.statuses.Attention['DUPLICATE_REFUND'], operations.domain.statuses.Attention['FAILED_AFTER_SUCCESS'], operations.domain.statuses.Attention['MISMATCH']])), name='flag_attention_known'), models.CheckConstraint(condition=models.Q(('fact', ''), _negated=True), name='flag_names_its_fact'), models.CheckConstraint(condition=models.Q(models.Q(('clear_reason', ''), ('cleared_at__isnull', True), ('cleared_by', '')), models.Q(('cleared_at__isnull', False), models.Q(('cleared_by', ''), _negated=True), models.Q(('clear_reason', ''), _negated=True)), _connector='OR'), name='flag_clearing_is_whole')],
                'triggers': [pgtrigger.compiler.Trigger(name='flag_cleared_once', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."cleared_at" IS NOT NULL)', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='b1f888368fce088fff7205dd4eb8dc78c5cd6961', operation='UPDATE', pgid='pgtrigger_flag_cleared_once_3497a', table='operations_flag', when='BEFORE')), pgtrigger.compiler.Trigger(name='flag_frozen', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."id" IS DISTINCT FROM (NEW."id") OR OLD."operation_id" IS DISTINCT FROM (NEW."operation_id") OR OLD."attention" IS DISTINCT FROM (NEW."attention") OR OLD."fact" IS DISTINCT FROM (NEW."fact") OR OLD."sides" IS DISTINCT FROM (NEW."sides") OR OLD."evidence_id" IS DISTINCT FROM (NEW."evidence_id") OR OLD."raised_at" IS DISTINCT FROM (NEW."raised_at"))', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='627ba5d3f5360549d626b4b479eed2de8408bc2b', operation='UPDATE', pgid='pgtrigger_flag_frozen_2a0bb', table='operations_flag', when='BEFORE')), pgtrigger.compiler.Trigger(name='flag_no_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot delete rows from % table', TG_TABLE_NAME;", hash='d55aff3bad49bab447b35fc7c7972351718158e6', operation='DELETE', pgid='pgtrigger_flag_no_delete_6d387', table='operations_flag', when='BEFORE')), pgtrigger.compiler.Trigger(name='flag_no_truncate', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'Rows of % are never removed.', TG_TABLE_NAME;", hash='a64fabc5a609c6c028086dc3768117d84384bf2d', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_flag_no_truncate_2d2b1', table='operations_flag', when='BEFORE'))],
            },
        ),
        _InstallTriggers(),
    ]
