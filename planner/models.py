"""What people keep: models, GPU types, hosts, saved plans and API tokens; `.core()` hands a row to the arithmetic."""

from typing import Any

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import F, Q
from knox.models import AbstractAuthToken

from planner.content import content_hash
from planner.core import hardware, model
from planner.querysets import GpuTypeQuerySet, ModelSpecQuerySet, PlanQuerySet, gpu_core, immutable, model_core

DEVICE_TYPES = {"cuda": "CUDA", "rocm": "ROCm", "hpu": "Gaudi", "cpu": "CPU"}
MOST_GPUS_PER_HOST = 1024


class Origin(models.TextChoices):
    """Who says so: our catalog, the Hugging Face hub, an uploaded file, or a person."""

    CATALOG = "catalog"
    HUB = "hub"
    UPLOAD = "upload"
    HAND = "hand"


class Confidence(models.TextChoices):
    """How far the source of a row is to be trusted."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class ModelSpec(models.Model):
    """A model as its `config.json` describes it."""

    name = models.CharField(max_length=200, unique=True)
    slug = models.CharField(max_length=200, unique=True, editable=False)
    architecture = models.CharField(max_length=100, blank=True, editable=False, db_index=True)
    config = models.JSONField()
    source = models.CharField(max_length=500, help_text="Where the configuration was read: an address, or a person.")
    confidence = models.CharField(max_length=10, choices=Confidence.choices, default=Confidence.MEDIUM)
    origin = models.CharField(max_length=10, choices=Origin.choices, default=Origin.HAND)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, editable=False, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = ModelSpecQuerySet.as_manager()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def facts(self) -> model.ModelFacts:
        """What the configuration states, for any architecture."""
        return model.model_facts(self.config)

    def core(self) -> model.Model:
        """Return the model for the arithmetic; Unknown if we cannot plan its architecture."""
        return model_core(ModelSpec, self.pk, self.updated_at)


class GpuType(models.Model):
    """A kind of device. Memory is what CUDA sees, as a range where drivers differ; rates are peak and dense."""

    slug = models.CharField(max_length=100, unique=True, editable=False)
    name = models.CharField(max_length=100, unique=True)
    device_type = models.CharField(max_length=10, choices=DEVICE_TYPES, default="cuda")
    total_bytes = models.BigIntegerField(validators=[MinValueValidator(1)])
    total_low_bytes = models.BigIntegerField(validators=[MinValueValidator(1)])
    total_high_bytes = models.BigIntegerField(validators=[MinValueValidator(1)])
    compute_capability = models.CharField(
        max_length=5, blank=True, validators=[RegexValidator(r"^\d{1,2}\.\d$", "Write it as 8.0.")]
    )
    memory_bandwidth_bytes_per_second = models.BigIntegerField(null=True, blank=True)
    bf16_flops = models.FloatField(null=True, blank=True)
    fp8_flops = models.FloatField(null=True, blank=True)
    fp4_flops = models.FloatField(null=True, blank=True)
    nvlink_bytes_per_second = models.BigIntegerField(null=True, blank=True)
    pcie = models.CharField(max_length=20, blank=True)
    aliases = models.JSONField(default=list, blank=True, help_text="Names that nvidia-smi prints.")
    source = models.CharField(max_length=1000, blank=True)
    confidence = models.CharField(max_length=10, choices=Confidence.choices, default=Confidence.MEDIUM)
    note = models.CharField(max_length=500, blank=True)
    origin = models.CharField(max_length=10, choices=Origin.choices, default=Origin.HAND)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = GpuTypeQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                name="gpu_total_is_within_its_range",
                condition=Q(total_low_bytes__lte=F("total_bytes"), total_bytes__lte=F("total_high_bytes")),
                violation_error_message="The total must lie between its low and its high value.",
            )
        ]

    def __str__(self) -> str:
        return self.name

    def core(self) -> hardware.Gpu:
        """Return the device for the arithmetic."""
        return gpu_core(GpuType, self.pk, self.updated_at)


class Host(models.Model):
    """A machine and the devices in it."""

    name = models.CharField(max_length=100, unique=True)
    gpu_type = models.ForeignKey(GpuType, on_delete=models.PROTECT, related_name="hosts")
    gpu_count = models.PositiveIntegerField(
        default=1, validators=[MinValueValidator(1), MaxValueValidator(MOST_GPUS_PER_HOST)]
    )
    note = models.CharField(max_length=500, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Plan(models.Model):
    """A question and the answer it got, frozen with the version of the arithmetic; an edit makes a child."""

    name = models.CharField(max_length=200)
    parent = models.ForeignKey("self", null=True, blank=True, on_delete=models.PROTECT, related_name="children")
    inputs = models.JSONField()
    document = models.JSONField()
    core_version = models.CharField(max_length=20)
    content_hash = models.CharField(max_length=64, db_index=True)
    # Copies of what the document says, so that a list needs no documents: safe, since a plan never changes.
    model_name = models.CharField(max_length=200, db_index=True)
    gpu_slug = models.CharField(max_length=100, db_index=True)
    vllm_version = models.CharField(max_length=20)
    verdict = models.CharField(max_length=20, db_index=True)
    summary = models.TextField()
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="plans")
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    objects = PlanQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.name

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Insert only: the database itself refuses a second row of the same key."""
        if not self._state.adding:
            raise immutable()
        super().save(*args, **{**kwargs, "force_insert": True})

    @property
    def is_intact(self) -> bool:
        """Whether inputs and answer are still those that were saved."""
        return self.content_hash == content_hash(self.inputs, self.document, self.core_version)


class ApiToken(AbstractAuthToken):
    """A person's or a machine's key to the API: kept as a hash, with an end, shown once."""

    NAME_LENGTH = 100
    name = models.CharField(max_length=NAME_LENGTH)

    def __str__(self) -> str:
        return self.name
