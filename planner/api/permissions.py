"""Who may do what through the API: signed in, and permitted by their groups, for reading too."""

from rest_framework.permissions import BasePermission, DjangoModelPermissions

_VIEW = "%(app_label)s.view_%(model_name)s"


class ModelPermissions(DjangoModelPermissions):
    """Django's model permissions, where looking needs the permission to view."""

    perms_map = {**DjangoModelPermissions.perms_map, "GET": [_VIEW], "HEAD": [_VIEW], "OPTIONS": [_VIEW]}
    message = "Your account may not do this: an admin can put it in a group that may."

    def has_permission(self, request, view) -> bool:
        """Leave methods that the resource does not have to its answer that it has none."""
        if getattr(view, "action", "") is None and request.user.is_authenticated:
            return True
        return super().has_permission(request, view)


class MayPlan(BasePermission):
    """Whoever may look at plans may ask for an estimate, which writes nothing."""

    message = ModelPermissions.message

    def has_permission(self, request, view) -> bool:
        return bool(request.user and request.user.is_authenticated and request.user.has_perm("planner.view_plan"))
