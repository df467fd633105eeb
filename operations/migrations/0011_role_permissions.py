"""What the roles may do, as permissions of their groups. Nothing but data."""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

PERMISSIONS = {
    "read": "Read operations and what belongs to them",
    "read_raw": "Read what was recorded, as it was recorded",
    "export": "Take lists and bundles out",
    "decide": "Claim, check and close operations",
    "bulk": "Decide many operations at once",
    "approve": "Answer as the second person",
    "administer": "Keep accounts",
    "keys": "Keep API keys",
    "subscriptions": "Keep who is told",
    "policies": "Keep policies and limits",
    "people": "Keep people and their roles",
}
READING = ["read", "read_raw", "export"]
DECIDING = [*READING, "decide", "bulk"]
ROLES = {
    "viewer": READING,
    "operator": DECIDING,
    "approver": [*DECIDING, "approve"],
    "admin": list(PERMISSIONS),
}


def give(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    kind, _ = apps.get_model("contenttypes", "ContentType").objects.get_or_create(
        app_label="operations", model="grant"
    )
    permission = apps.get_model("auth", "Permission")
    made = {
        codename: permission.objects.get_or_create(
            content_type=kind, codename=codename, defaults={"name": name}
        )[0]
        for codename, name in PERMISSIONS.items()
    }
    for role, codenames in ROLES.items():
        group, _ = apps.get_model("auth", "Group").objects.get_or_create(name=role)
        group.permissions.add(*(made[codename] for codename in codenames))


def take(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    apps.get_model("auth", "Permission").objects.filter(
        content_type__app_label="operations", content_type__model="grant"
    ).delete()


class Migration(migrations.Migration):
    dependencies = [
        ("operations", "0010_access"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]
    operations = [migrations.RunPython(give, take)]
