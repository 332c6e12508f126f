"""Addresses of this room: every page, and the same with `.json` as data."""

from django.urls import URLPattern, URLResolver, path, register_converter

from planner.pages import account, compare, gpu_types, home, hosts, model_add, models, plans, techniques, workbench
from planner.pages.answer import page


class OurSlug:
    """A slug as `names.slug_of` makes them: nothing else can be the address of a row."""

    regex = r"[a-z0-9._-]{1,200}"

    def to_python(self, value: str) -> str:
        """Return it as it stands."""
        return value

    def to_url(self, value: str) -> str:
        """Return it as it stands."""
        return value


register_converter(OurSlug, "our_slug")

urlpatterns: list[URLPattern | URLResolver] = [
    *page("", home.home, "home"),
    path("start", home.start, name="start"),
    path("models/add", model_add.model_new, name="model_add"),
    path("models/add/hub", model_add.from_hub, name="model_add_hub"),
    path("models/add/file", model_add.from_file, name="model_add_file"),
    path("models/add/hand", model_add.by_hand, name="model_add_hand"),
    *page("models", models.model_list, "models"),
    *page("models/<our_slug:slug>/fits", models.model_fits, "model_fits"),
    *page("models/<our_slug:slug>", models.model_detail, "model"),
    path("gpu-types/add", gpu_types.gpu_type_new, name="gpu_type_add"),
    path("gpu-types/import", gpu_types.gpu_type_import, name="gpu_type_import"),
    *page("gpu-types", gpu_types.gpu_type_list, "gpu_types"),
    *page("gpu-types/<our_slug:slug>", gpu_types.gpu_type_detail, "gpu_type"),
    path("hosts/add", hosts.host_new, name="host_add"),
    path("hosts/import", hosts.host_import, name="host_import"),
    *page("hosts", hosts.host_list, "hosts"),
    *page("hosts/<int:pk>", hosts.host_detail, "host"),
    path("plans/new/help", workbench.workbench_help, name="workbench_help"),
    *page("plans/new", workbench.workbench, "workbench"),
    *page("plans", plans.plan_list, "plans"),
    *page("plans/<int:pk>", plans.plan_detail, "plan"),
    *page("compare", compare.compare_plans, "compare"),
    *page("techniques", techniques.technique_list, "techniques"),
    *page("account", account.account, "account"),
    path("account/tokens", account.token_new, name="token_add"),
    path("account/tokens/<our_slug:pk>/revoke", account.token_end, name="token_revoke"),
    path("account/password", account.password_change, name="password_change"),
]
