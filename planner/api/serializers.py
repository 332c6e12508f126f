"""What goes in and out of the API, and of the pages' `.json`."""

from dataclasses import asdict
from difflib import get_close_matches
from typing import Any

from django.db import models
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from planner.api.fields import Figure, Text, Whole
from planner.models import MOST_GPUS_PER_HOST, GpuType, Host, ModelSpec, Plan

MOST_TOKENS = 10**9


class Strict:
    """Refuses fields that it does not read: a misspelt one would be ignored in silence."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict):
            known = [name for name, field in self.fields.items() if not field.read_only]
            if unknown := [name for name in data if name not in known]:
                raise serializers.ValidationError({name: [_unknown_field(name, known)] for name in unknown})
        return super().to_internal_value(data)


class StrictSerializer(Strict, serializers.Serializer):
    """A body of its own shape."""


class RowSerializer(Strict, serializers.ModelSerializer):
    """A body that has the shape of a row."""

    serializer_field_mapping = {
        **serializers.ModelSerializer.serializer_field_mapping,
        models.CharField: Text,
        models.BigIntegerField: Whole,
        models.PositiveIntegerField: Whole,
        models.FloatField: Figure,
    }


def _unknown_field(name: str, known: list[str]) -> serializers.ErrorDetail:
    near = get_close_matches(name, known, n=1)
    hint = f"Did you mean {near[0]}?" if near else f"The fields are {', '.join(known)}."
    return serializers.ErrorDetail(f"There is no such field. {hint}", code="unknown_field")


class RequestClassSerializer(StrictSerializer):
    """One class of requests in the mix that the deployment will serve."""

    name = Text(max_length=100)
    share = Figure(min_value=0, max_value=1e9, help_text="Weight among the classes; they need not sum to 1.")
    prompt_tokens = Whole(min_value=1, max_value=MOST_TOKENS)
    output_tokens = Whole(min_value=0, max_value=MOST_TOKENS)
    shared_prefix_tokens = Whole(min_value=0, max_value=MOST_TOKENS, required=False)
    concurrent = Whole(min_value=1, max_value=MOST_TOKENS, required=False, allow_null=True)


class EstimateSerializer(StrictSerializer):
    """A question: a model, a device, and a vLLM command as text or as flags."""

    model = Text(max_length=200, required=False, allow_null=True, help_text="A name of /api/v1/models.")
    gpu = Text(max_length=100, help_text="A slug of /api/v1/gpu-types, or the name that nvidia-smi prints.")
    gpu_count = Whole(
        min_value=1,
        max_value=MOST_GPUS_PER_HOST,
        required=False,
        allow_null=True,
        help_text="How many there are: a cap.",
    )
    gpu_memory_gib = Figure(
        min_value=0.001, max_value=1e6, required=False, allow_null=True, help_text="Total as CUDA reports it, in GiB."
    )
    free_gib = Figure(
        min_value=0,
        max_value=1e6,
        required=False,
        allow_null=True,
        help_text="Free at start, in GiB, if others use it.",
    )
    vllm_version = Text(max_length=50, required=False, allow_null=True, help_text="The newest known if left out.")
    config = serializers.DictField(
        required=False, allow_null=True, help_text="A config.json in place of a known model."
    )
    args = serializers.DictField(required=False, allow_null=True, help_text="vLLM's flags, with underscores.")
    command = Text(max_length=20_000, required=False, allow_null=True, help_text="`vllm serve …` as in a shell.")
    environment = serializers.DictField(child=Text(), required=False, allow_null=True)
    requests = RequestClassSerializer(many=True, required=False, allow_null=True, max_length=50)
    include = serializers.ListField(
        child=serializers.ChoiceField(["help"]), required=False, allow_null=True, help_text="`help`: what would help."
    )

    def inputs(self, body: Any) -> dict[str, Any]:
        """Return what was given, checked; null is the same as left out."""
        return {name: value for name, value in self.run_validation(body).items() if value is not None}


class SweepSerializer(EstimateSerializer):
    """A question with the flags to vary: every combination of their values is planned."""

    axes = serializers.DictField(
        child=serializers.ListField(allow_empty=False),
        allow_empty=False,
        help_text="Flags with underscores, each with its values; 10,000 combinations at most.",
    )
    include = None


class SweepRowSerializer(serializers.Serializer):
    """One combination; the lists go with the utilizations of the sweep."""

    flags = serializers.DictField()
    max_model_len = serializers.IntegerField()
    boots = serializers.ListField(child=serializers.BooleanField())
    num_gpu_blocks = serializers.ListField(child=serializers.IntegerField())
    requests = serializers.ListField(child=serializers.IntegerField(), help_text="Of full length, at once.")
    reason = serializers.CharField(help_text="Why none boots; empty where one does.")


class SweepAnswerSerializer(serializers.Serializer):
    """What every combination holds."""

    gpu_memory_utilization = serializers.ListField(child=serializers.FloatField())
    rows = SweepRowSerializer(many=True)


QUESTION = (
    EstimateSerializer()
)  # made once: DRF copies every field anew for each serializer, which costs as much as a plan


class ModelSerializer(serializers.ModelSerializer):
    """A model of the list, with what its configuration states."""

    facts = serializers.SerializerMethodField()

    class Meta:
        model = ModelSpec
        fields = ["name", "slug", "architecture", "source", "confidence", "origin", "facts", "created_at", "updated_at"]

    @extend_schema_field(serializers.DictField())
    def get_facts(self, row: ModelSpec) -> dict[str, Any]:
        return asdict(row.facts)


class ModelDetailSerializer(ModelSerializer):
    """A model with its whole configuration."""

    class Meta(ModelSerializer.Meta):
        fields = [*ModelSerializer.Meta.fields, "config"]


class ModelFromConfigSerializer(StrictSerializer):
    """A model by its `config.json`."""

    name = Text(max_length=200)
    config = serializers.DictField(allow_empty=False)
    source = Text(max_length=500, required=False, allow_blank=True, default="")


class ModelFromHubSerializer(StrictSerializer):
    """A model by its Hugging Face id."""

    repo_id = Text(max_length=200)
    token = Text(max_length=500, required=False, allow_blank=True, default="", help_text="For gated models; not kept.")


class GpuTypeSerializer(RowSerializer):
    """A kind of device; sizes in bytes, rates in units of one a second."""

    aliases = serializers.ListField(child=Text(max_length=100), required=False, max_length=50)

    class Meta:
        model = GpuType
        exclude = ["id"]
        read_only_fields = ["slug", "origin"]
        extra_kwargs = {"name": {"validators": []}}  # the service says whose name is taken, also in another case


class HostSerializer(RowSerializer):
    """A machine and its devices."""

    gpu_type = Text(source="gpu_type.slug", max_length=100, help_text="A slug, or the name that nvidia-smi prints.")

    class Meta:
        model = Host
        fields = ["id", "name", "gpu_type", "gpu_count", "note", "created_at", "updated_at"]
        extra_kwargs = {"name": {"validators": []}}


class PlanSerializer(serializers.ModelSerializer):
    """A saved plan as a list shows it."""

    created_by = serializers.CharField(source="created_by.username", read_only=True)

    class Meta:
        model = Plan
        fields = [
            *("id", "name", "parent", "model_name", "gpu_slug", "vllm_version", "verdict", "summary"),
            *("core_version", "content_hash", "created_by", "created_at"),
        ]


class PlanDetailSerializer(PlanSerializer):
    """A saved plan with the question and the answer that it froze."""

    class Meta(PlanSerializer.Meta):
        fields = [*PlanSerializer.Meta.fields, "inputs", "document"]


class PlanSaveSerializer(StrictSerializer):
    """A question whose answer is to be kept."""

    name = Text(max_length=200, required=False, allow_blank=True, default="")
    parent = Whole(required=False, allow_null=True, help_text="The plan that this one changes.")
    inputs = EstimateSerializer()


class MeSerializer(serializers.Serializer):
    """Who is asking, and what they may do."""

    username = serializers.CharField()
    groups = serializers.ListField(child=serializers.CharField())
    permissions = serializers.ListField(child=serializers.CharField())
