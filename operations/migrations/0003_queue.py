import datetime

import django.db.models.deletion
import django.db.models.expressions
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

import operations.domain.statuses


class Migration(migrations.Migration):

    dependencies = [
        ('operations', '0002_roles'),
    ]

    operations = [
        migrations.CreateModel(
            name='Claim',
            fields=[
                ('operation', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='claim', serialize=False, to='operations.operation')),
                ('holder', models.CharField(max_length=255)),
                ('holder_name', models.CharField(max_length=255)),
                ('claimed_at', models.DateTimeField()),
                ('renewed_at', models.DateTimeField()),
                ('expires_at', models.DateTimeField()),
                ('taken_reason', models.CharField(blank=True, default='', max_length=500)),
            ],
        ),
        migrations.CreateModel(
            name='Presence',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('person', models.CharField(max_length=255)),
                ('person_name', models.CharField(max_length=255)),
                ('seen_at', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='SavedView',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=60)),
                ('owner', models.CharField(max_length=255)),
                ('owner_name', models.CharField(max_length=255)),
                ('shared', models.BooleanField(default=False)),
                ('query', models.CharField(max_length=1000)),
                ('created_at', models.DateTimeField()),
            ],
        ),
        migrations.RemoveIndex(
            model_name='operation',
            name='operation_queue',
        ),
        migrations.AddIndex(
            model_name='operation',
            index=models.Index(models.OrderBy(models.F('key_window_closes_at'), nulls_last=True), models.OrderBy(django.db.models.expressions.CombinedExpression(models.F('amount'), '*', models.Value(-1))), models.OrderBy(models.F('id')), condition=models.Q(('status', operations.domain.statuses.Status['UNKNOWN'])), name='operation_unknown_queue'),
        ),
        migrations.AddIndex(
            model_name='operation',
            index=models.Index(models.F('unknown_reason'), models.OrderBy(models.F('key_window_closes_at'), nulls_last=True), models.OrderBy(django.db.models.expressions.CombinedExpression(models.F('amount'), '*', models.Value(-1))), models.OrderBy(models.F('id')), condition=models.Q(('status', operations.domain.statuses.Status['UNKNOWN'])), name='operation_unknown_by_reason'),
        ),
        migrations.AddIndex(
            model_name='operation',
            index=models.Index(models.F('account'), models.OrderBy(models.F('key_window_closes_at'), nulls_last=True), models.OrderBy(django.db.models.expressions.CombinedExpression(models.F('amount'), '*', models.Value(-1))), models.OrderBy(models.F('id')), condition=models.Q(('status', operations.domain.statuses.Status['UNKNOWN'])), name='operation_unknown_by_account'),
        ),
        migrations.AddIndex(
            model_name='operation',
            index=models.Index(models.F('opened_by'), models.OrderBy(models.F('key_window_closes_at'), nulls_last=True), models.OrderBy(django.db.models.expressions.CombinedExpression(models.F('amount'), '*', models.Value(-1))), models.OrderBy(models.F('id')), condition=models.Q(('status', operations.domain.statuses.Status['UNKNOWN'])), name='operation_unknown_by_agent'),
        ),
        migrations.AddIndex(
            model_name='operation',
            index=models.Index(models.OrderBy(models.F('key_window_closes_at'), nulls_last=True), models.OrderBy(django.db.models.expressions.CombinedExpression(models.F('amount'), '*', models.Value(-1))), models.OrderBy(models.F('id')), condition=models.Q(('attention', []), _negated=True), name='operation_flagged_queue'),
        ),
        migrations.AddIndex(
            model_name='operation',
            index=models.Index(condition=models.Q(('attention', []), _negated=True), fields=['-created_at', '-id'], name='operation_flagged_by_age'),
        ),
        migrations.AddIndex(
            model_name='operation',
            index=models.Index(condition=models.Q(('needs_person_since__isnull', False)), fields=['needs_person_since', 'id'], name='operation_waiting_by_age'),
        ),
        migrations.AddIndex(
            model_name='operation',
            index=models.Index(models.OrderBy(models.F('currency')), models.OrderBy(django.db.models.expressions.CombinedExpression(models.F('amount'), '*', models.Value(-1))), models.OrderBy(models.F('id')), condition=models.Q(('needs_person_since__isnull', False)), name='operation_waiting_by_amount'),
        ),
        migrations.AddIndex(
            model_name='operation',
            index=models.Index(condition=models.Q(('status__in', [operations.domain.statuses.Status['FAILED'], operations.domain.statuses.Status['PROCESSING'], operations.domain.statuses.Status['UNKNOWN']])), fields=['status', '-created_at', '-id'], name='operation_by_status'),
        ),
        migrations.AddIndex(
            model_name='claim',
            index=models.Index(fields=['holder', 'expires_at'], name='claim_by_holder'),
        ),
        migrations.AddConstraint(
            model_name='claim',
            constraint=models.CheckConstraint(condition=models.Q(('holder', ''), _negated=True), name='claim_has_a_holder'),
        ),
        migrations.AddConstraint(
            model_name='claim',
            constraint=models.CheckConstraint(condition=models.Q(('renewed_at__gte', models.F('claimed_at')), ('expires_at__gt', models.F('renewed_at')), ('expires_at__lte', django.db.models.expressions.CombinedExpression(models.F('renewed_at'), '+', models.Value(datetime.timedelta(seconds=900))))), name='claim_runs_out'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='claim',
            trigger=pgtrigger.compiler.Trigger(name='claim_taken_with_a_reason', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."holder" <> NEW."holder" AND OLD."expires_at" > NEW."claimed_at" AND NEW."taken_reason" = \'\')', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='a79d58d8162f4cfb26627ed0fd8d23c77092326b', operation='UPDATE', pgid='pgtrigger_claim_taken_with_a_reason_8eb6a', table='operations_claim', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='claim',
            trigger=pgtrigger.compiler.Trigger(name='claim_frozen', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."operation_id" IS DISTINCT FROM (NEW."operation_id"))', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='bd5adbe28d6a5e3c3dcd2f28b3b1c80ebad0712b', operation='UPDATE', pgid='pgtrigger_claim_frozen_887b7', table='operations_claim', when='BEFORE')),
        ),
        migrations.AddField(
            model_name='presence',
            name='operation',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='presences', to='operations.operation'),
        ),
        migrations.AddConstraint(
            model_name='savedview',
            constraint=models.UniqueConstraint(fields=('owner', 'name'), name='saved_view_name_once'),
        ),
        migrations.AddConstraint(
            model_name='savedview',
            constraint=models.UniqueConstraint(condition=models.Q(('shared', True)), fields=('name',), name='saved_view_shared_name_once'),
        ),
        migrations.AddConstraint(
            model_name='savedview',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('name', ''), _negated=True), models.Q(('owner', ''), _negated=True)), name='saved_view_has_a_name_and_an_owner'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='savedview',
            trigger=pgtrigger.compiler.Trigger(name='saved_view_frozen', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."id" IS DISTINCT FROM (NEW."id") OR OLD."owner" IS DISTINCT FROM (NEW."owner") OR OLD."query" IS DISTINCT FROM (NEW."query") OR OLD."created_at" IS DISTINCT FROM (NEW."created_at"))', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='ae6c20b90aa376250b5b2039088b365a97c359bc', operation='UPDATE', pgid='pgtrigger_saved_view_frozen_18900', table='operations_savedview', when='BEFORE')),
        ),
        migrations.AddIndex(
            model_name='presence',
            index=models.Index(fields=['person', 'seen_at'], name='presence_by_person'),
        ),
        migrations.AddConstraint(
            model_name='presence',
            constraint=models.UniqueConstraint(fields=('operation', 'person'), name='presence_once'),
        ),
        migrations.AddConstraint(
            model_name='presence',
            constraint=models.CheckConstraint(condition=models.Q(('person', ''), _negated=True), name='presence_is_somebodys'),
        ),
    ]
