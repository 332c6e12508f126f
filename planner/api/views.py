"""The API's resources: each reads its body, calls a service or a query, and answers with a serializer."""

from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, status
from rest_framework.decorators import action
from rest_framework.exceptions import NotFound
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView
from rest_framework.viewsets import GenericViewSet

from planner import accounts, services
from planner.answers import answer, swept
from planner.api import serializers
from planner.api.examples import ESTIMATE_EXAMPLES, MODEL_EXAMPLES, PLAN_EXAMPLES, SWEEP_EXAMPLES
from planner.api.permissions import MayPlan
from planner.api.schema import DOCUMENT
from planner.filters import GpuTypeFilter, HostFilter, ModelFilter, PlanFilter
from planner.models import GpuType, Host, ModelSpec, Plan


class WriteThrottled:
    """Writing is counted under the scope `write`; reading is free."""

    @property
    def throttle_scope(self) -> str | None:
        return None if self.request.method in {"GET", "HEAD", "OPTIONS"} else "write"


class EstimateView(APIView):
    """Answer a question without keeping anything."""

    permission_classes = [MayPlan]
    throttle_scope = "estimate"

    @extend_schema(
        operation_id="estimate",
        tags=["estimate"],
        request=serializers.EstimateSerializer,
        responses={200: DOCUMENT},
        examples=ESTIMATE_EXAMPLES,
    )
    def post(self, request: Request) -> Response:
        """Plan one deployment: what vLLM would do, rank by rank, and why. Nothing is kept."""
        return Response(answer(serializers.QUESTION.inputs(request.data)))


class SweepView(APIView):
    """Answer many questions that differ in a few flags."""

    permission_classes = [MayPlan]
    throttle_scope = "write"

    @extend_schema(
        operation_id="sweep",
        tags=["estimate"],
        request=serializers.SweepSerializer,
        responses={200: serializers.SweepAnswerSerializer},
        examples=SWEEP_EXAMPLES,
    )
    def post(self, request: Request) -> Response:
        """Plan every combination of some flags, up to 10,000 at once. Nothing is kept."""
        given = serializers.SweepSerializer().inputs(request.data)
        return Response(swept(given, given.pop("axes")))


class ListAndRead(WriteThrottled, mixins.ListModelMixin, mixins.RetrieveModelMixin, GenericViewSet):
    """A resource that can be listed, filtered and read."""

    def given(self, kind: type) -> dict[str, Any]:
        """Return the body, checked."""
        body = kind(data=self.request.data)
        body.is_valid(raise_exception=True)
        return body.validated_data

    def made(self, kind: type, row: Any) -> Response:
        """Return 201 with the new row."""
        return Response(kind(row, context=self.get_serializer_context()).data, status=status.HTTP_201_CREATED)


class ModelViewSet(ListAndRead):
    """Models, by their slug."""

    queryset = ModelSpec.objects.all()
    serializer_class = serializers.ModelSerializer
    filterset_class = ModelFilter
    lookup_field = "slug"
    lookup_value_regex = "[a-z0-9._-]{1,200}"

    def get_serializer_class(self) -> type:
        return serializers.ModelSerializer if self.action == "list" else serializers.ModelDetailSerializer

    @extend_schema(
        request=serializers.ModelFromConfigSerializer,
        responses={201: serializers.ModelDetailSerializer},
        examples=MODEL_EXAMPLES,
    )
    def create(self, request: Request) -> Response:
        """Add a model by its `config.json`."""
        row = services.model_add_from_config(user=request.user, **self.given(serializers.ModelFromConfigSerializer))
        return self.made(serializers.ModelDetailSerializer, row)

    @extend_schema(request=serializers.ModelFromHubSerializer, responses={201: serializers.ModelDetailSerializer})
    @action(detail=False, methods=["post"], url_path="from-hub")
    def from_hub(self, request: Request) -> Response:
        """Add a model by its Hugging Face id; only its configuration is fetched."""
        row = services.model_add_from_hub(user=request.user, **self.given(serializers.ModelFromHubSerializer))
        return self.made(serializers.ModelDetailSerializer, row)

    def destroy(self, request: Request, slug: str) -> Response:
        """Remove a model that people added; the catalog's own stay."""
        services.model_remove(user=request.user, model=self.get_object())
        return Response(status=status.HTTP_204_NO_CONTENT)


class FleetViewSet(ListAndRead):
    """Rows that people add, change and remove."""

    def create(self, request: Request) -> Response:
        """Add one."""
        row = self.add(**self.given(self.serializer_class))
        return self.made(self.serializer_class, row)

    def partial_update(self, request: Request, **_: object) -> Response:
        """Change one that people added; what is left out stays."""
        row = self.get_object()
        body = self.get_serializer(row, data=request.data, partial=True)
        body.is_valid(raise_exception=True)
        changed = services.row_change(user=request.user, row=row, **self.columns(body.validated_data))
        return Response(self.get_serializer(changed).data)

    def destroy(self, request: Request, **_: object) -> Response:
        """Remove one that people added and nothing needs."""
        services.row_remove(user=request.user, row=self.get_object())
        return Response(status=status.HTTP_204_NO_CONTENT)

    def columns(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the body as the row's columns."""
        return given


class GpuTypeViewSet(FleetViewSet):
    """GPU types, by their slug."""

    queryset = GpuType.objects.all()
    serializer_class = serializers.GpuTypeSerializer
    filterset_class = GpuTypeFilter
    lookup_field = "slug"
    lookup_value_regex = "[a-z0-9._-]{1,100}"

    def add(self, **given: Any) -> GpuType:
        return services.gpu_type_add(user=self.request.user, **given)


class HostViewSet(FleetViewSet):
    """Machines, by their number."""

    queryset = Host.objects.select_related("gpu_type")
    serializer_class = serializers.HostSerializer
    filterset_class = HostFilter
    lookup_value_regex = "[0-9]{1,18}"

    def add(self, **given: Any) -> Host:
        return services.host_add(user=self.request.user, **self.columns(given))

    def columns(self, given: dict[str, Any]) -> dict[str, Any]:
        kind = given.pop("gpu_type", None)
        return given | ({"gpu_type": services.gpu_type_named(kind["slug"])} if kind else {})


class PlanViewSet(ListAndRead):
    """Saved plans, by their number; they never change."""

    queryset = Plan.objects.select_related("created_by")
    serializer_class = serializers.PlanSerializer
    filterset_class = PlanFilter
    lookup_value_regex = "[0-9]{1,18}"

    def get_queryset(self):
        return Plan.objects.listed() if self.action in {"list", "children"} else super().get_queryset()

    def get_serializer_class(self) -> type:
        listed = self.action in {"list", "children"}
        return serializers.PlanSerializer if listed else serializers.PlanDetailSerializer

    @extend_schema(
        request=serializers.PlanSaveSerializer,
        responses={201: serializers.PlanDetailSerializer},
        examples=PLAN_EXAMPLES,
    )
    def create(self, request: Request) -> Response:
        """Freeze a question and its answer."""
        body = serializers.PlanSaveSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        given = body.validated_data
        inputs = {name: value for name, value in given["inputs"].items() if value is not None}
        parent = services.plan_numbered(given["parent"]) if given.get("parent") is not None else None
        row = services.plan_save(user=request.user, inputs=inputs, name=given["name"], parent=parent)
        return self.made(serializers.PlanDetailSerializer, row)

    @extend_schema(responses=serializers.PlanSerializer(many=True), filters=False)
    @action(detail=True)
    def children(self, request: Request, pk: str) -> Response:
        """List the plans that change this one."""
        get_object_or_404(Plan, pk=pk)
        page = self.paginate_queryset(self.get_queryset().filter(parent=pk))
        return self.get_paginated_response(self.get_serializer(page, many=True).data)


class MeView(APIView):
    """Whoever is signed in."""

    permission_classes = [IsAuthenticated]

    @extend_schema(operation_id="me", tags=["me"], responses=serializers.MeSerializer)
    def get(self, request: Request) -> Response:
        """Say who is asking, and what they may do."""
        user = request.user
        groups = sorted(group.name for group in user.groups.all())
        return Response({"username": user.username, "groups": groups, "permissions": accounts.permissions_of(user)})


class NoSuchAddress(APIView):
    """Whatever else stands under `/api/v1/`: an answer in the API's own form, to those who are signed in."""

    permission_classes = [IsAuthenticated]
    schema = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        raise NotFound("There is nothing at this address.")
