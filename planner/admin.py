"""The admin site: people, groups and the audit log. Everything else has pages of its own."""

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import User
from django.http import HttpRequest

from planner.models import ApiToken

admin.site.site_header = admin.site.site_title = "vLLM Planner"
admin.site.unregister(User)


@admin.register(User)
class PersonAdmin(UserAdmin):
    """People; only a superuser may make superusers, or give rights that no group has."""

    list_display = ["username", "email", "is_active", "is_staff", "last_login"]
    list_filter = ["groups", "is_active", "is_staff"]

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> Any:
        own = super().get_readonly_fields(request, obj)
        return own if request.user.is_superuser else [*own, "is_superuser", "user_permissions"]

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """Nobody below a superuser changes a superuser: a new password would be a way up."""
        above = obj is not None and obj.is_superuser and not request.user.is_superuser
        return not above and super().has_change_permission(request, obj)


@admin.register(ApiToken)
class ApiTokenAdmin(admin.ModelAdmin):
    """Whose tokens there are, to revoke one; never their text, which is kept nowhere."""

    list_display = ["name", "user", "created", "expiry"]
    list_select_related = ["user"]
    fields = ("name", "user", "created", "expiry")
    readonly_fields = ("name", "user", "created", "expiry")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: ApiToken | None = None) -> bool:
        return False
