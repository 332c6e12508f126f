"""The four groups and what each may do."""

from django.apps import apps as installed
from django.contrib.auth.management import create_permissions
from django.db import migrations

from planner.accounts import groups_ensure


def make_groups(apps, schema_editor):
    for label in ("auth", "auditlog", "planner"):  # Django makes permissions only after the last migration
        create_permissions(installed.get_app_config(label), apps=apps, verbosity=0)
    groups_ensure(group=apps.get_model("auth", "Group"), permission=apps.get_model("auth", "Permission"))


class Migration(migrations.Migration):
    dependencies = [
        ("planner", "0001_initial"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("auditlog", "0001_initial"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]
    operations = [migrations.RunPython(make_groups, migrations.RunPython.noop)]
