"""The writes: each checks what it is given, changes the database in one transaction, and says who did it."""

from collections.abc import Mapping
from typing import Any

from auditlog.context import set_actor
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import IntegrityError, models, transaction
from django.db.models import ProtectedError

from planner import hub
from planner.answers import answer
from planner.catalog_rows import catalog_load as catalog_load
from planner.content import content_hash
from planner.core import CORE_VERSION
from planner.core.errors import BadInput, PlanningError, Unknown
from planner.core.model import model_facts
from planner.faults import bad_inputs
from planner.models import Confidence, GpuType, Host, ModelSpec, Origin, Plan
from planner.names import slug_of
from planner.strict_json import storable


def plan_save(*, user: User, inputs: Mapping[str, object], name: str = "", parent: Plan | None = None) -> Plan:
    """Freeze a question and its answer; raise Unknown where there is no answer to keep."""
    kept = storable(dict(inputs), field="inputs")
    document = answer(inputs)
    if document["verdict"] == "unknown":
        raise Unknown(field="inputs", message=str(document["summary"]), fix="save a plan that has an answer")
    plan = Plan(
        name=name.strip() or _described(document),
        parent=parent,
        inputs=kept,
        document=document,
        core_version=CORE_VERSION,
        content_hash=content_hash(kept, document, CORE_VERSION),
        model_name=document["model"]["name"],
        gpu_slug=document["gpu"]["slug"],
        vllm_version=document["engine"]["version"],
        verdict=document["verdict"],
        summary=document["summary"],
        created_by=user,
    )
    return _added(plan, user=user)


def plan_numbered(number: int) -> Plan:
    """Return the plan that another is to be a child of, or raise BadInput."""
    found = Plan.objects.filter(pk=number).first()
    if found is None:
        raise BadInput(field="parent", message=f"there is no plan {number}.", fix="give the number of a saved plan")
    return found


def _described(document: Mapping[str, Any]) -> str:
    gpu = document["gpu"]
    return f"{document['model']['name'].rpartition('/')[2]} on {gpu['count']} × {gpu['name']}"


def model_add_from_config(
    *,
    user: User,
    name: str,
    config: Mapping[str, object],
    source: str,
    origin: str = Origin.UPLOAD,
    confidence: str = Confidence.MEDIUM,
) -> ModelSpec:
    """Add a model by its `config.json`; any architecture may be kept, also one that we cannot plan yet."""
    if not isinstance(config, Mapping):
        raise BadInput(field="config", message="it is not a JSON object.", fix="give the content of config.json")
    kept = storable(finite(config), field="config")
    row = ModelSpec(
        name=name.strip(),
        slug=slug_of(name),
        architecture=model_facts(config).architecture or "",
        config=kept,
        source=source.strip() or f"given by {user.get_username()}",
        confidence=confidence,
        origin=origin,
        created_by=user,
    )
    return _added(row, user=user)


def model_add_from_hub(*, user: User, repo_id: str, token: str = "") -> ModelSpec:
    """Add a model by its Hugging Face id; the token serves this one request and is not kept."""
    try:
        found = hub.fetch_model(repo_id.strip(), token=token or None)
    except PlanningError as error:
        raise type(error)(field="repo_id", message=error.message, fix=error.fix) from error
    return model_add_from_config(
        user=user,
        name=found.repo_id,
        config=found.config,
        source=found.source,
        origin=Origin.HUB,
        confidence=Confidence.HIGH,
    )


def finite(value: Any) -> Any:
    """Return the value with `Infinity` and `NaN`, which no database keeps in JSON, as text."""
    if isinstance(value, float) and value - value != 0:
        return {"inf": "Infinity", "-inf": "-Infinity"}.get(str(value), "NaN")
    if isinstance(value, Mapping):
        return {key: finite(item) for key, item in value.items()}
    return [finite(item) for item in value] if isinstance(value, list | tuple) else value


def model_remove(*, user: User, model: ModelSpec) -> None:
    """Take a model off the list; saved plans keep what they were made with."""
    if model.origin == Origin.CATALOG:
        raise BadInput(field="model", message="the catalog brings this model.", fix="leave it; it would come back")
    with set_actor(user):
        model.delete()


def gpu_type_add(*, user: User, name: str, origin: str = Origin.HAND, **columns: Any) -> GpuType:
    """Add a kind of device; `columns` are those of `GpuType`, sizes in bytes and rates in units of one."""
    return _added(GpuType(name=name.strip(), slug=slug_of(name), origin=origin, **columns), user=user)


def host_add(*, user: User, name: str, gpu_type: str | GpuType, gpu_count: int = 1, note: str = "") -> Host:
    """Add a machine; `gpu_type` may be a row, a slug, or the name that `nvidia-smi` prints."""
    kind = gpu_type_named(gpu_type) if isinstance(gpu_type, str) else gpu_type
    return _added(Host(name=name.strip(), gpu_type=kind, gpu_count=gpu_count, note=note), user=user)


def gpu_type_named(name: str) -> GpuType:
    """Return the row that a person means, or raise BadInput: a host cannot have a kind of GPU that is not known."""
    try:
        return GpuType.objects.row_named(name)
    except Unknown as error:
        raise BadInput(field="gpu_type", message=error.message, fix=error.fix) from error


def row_change(*, user: User, row: GpuType | Host, **columns: Any) -> Any:
    """Change a GPU type or a host; what the catalog brings is not changed by hand."""
    _refuse_catalog(row)
    for name, value in columns.items():
        setattr(row, name, value)
    _check(row)
    with transaction.atomic(), set_actor(user):
        row.save()
    return row


def row_remove(*, user: User, row: GpuType | Host) -> None:
    """Remove a GPU type or a host that nothing needs."""
    _refuse_catalog(row)
    try:
        with transaction.atomic(), set_actor(user):
            row.delete()
    except ProtectedError as error:
        names = ", ".join(sorted(str(item) for item in error.protected_objects)[:5])
        raise BadInput(field="gpu_type", message=f"hosts have it: {names}.", fix="change those hosts first") from error


def _refuse_catalog(row: models.Model) -> None:
    if getattr(row, "origin", "") == Origin.CATALOG:
        raise BadInput(field="name", message="the catalog brings this row.", fix="add a row of your own beside it")


def _added(row: Any, *, user: User | None) -> Any:
    _check(row)
    try:
        with transaction.atomic(), set_actor(user):
            row.save(force_insert=True)
    except IntegrityError as error:
        raise BadInput(field="name", message="it was taken a moment ago.", fix="choose another name") from error
    return row


def _check(row: models.Model) -> None:
    for field in row._meta.concrete_fields:
        storable(getattr(row, field.attname), field=field.name)
    if getattr(row, "slug", None) == "":
        raise BadInput(field="name", message="it has no letter and no digit.", fix="give a name with letters")
    try:
        row.full_clean()
    except ValidationError as error:
        raise bad_inputs(error) from error
