"""From one line of plain words to a workbench address, or to the choices that the line leaves open."""

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlencode

from django.db.models import Q, QuerySet

from planner.models import GpuType, ModelSpec
from planner.readers.sentence import Wish, read_sentence

MOST_CHOICES = 8
MOST_WORDS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One thing the line may mean: what it says, and the query of its workbench."""

    label: str
    query: str


def choices_for(line: str) -> tuple[Choice, ...]:
    """Return every pair of a model and a GPU type that holds all the words of the line; none where nothing does."""
    wish = read_sentence(line)
    gpus: list[GpuType | None] = list(_gpu_types(wish.gpu)) if wish.gpu else [None]
    return tuple(_choice(model, gpu, wish) for model in _models(wish.model) for gpu in gpus)[:MOST_CHOICES]


def _models(text: str) -> Iterator[ModelSpec]:
    exact = ModelSpec.objects.filter(name__iexact=text).first()
    yield from [exact] if exact else _with_words(ModelSpec.objects.defer("config"), text, "name")[:MOST_CHOICES]


def _gpu_types(text: str) -> Iterator[GpuType]:
    exact = GpuType.objects.filter(Q(name__iexact=text) | Q(slug__iexact=text)).first()
    yield from [exact] if exact else _with_words(GpuType.objects.all(), text, "name", "slug")[:MOST_CHOICES]


def _with_words(rows: QuerySet, text: str, *fields: str) -> QuerySet:
    for word in text.replace("-", " ").split()[:MOST_WORDS]:
        anywhere = Q()
        for field in fields:
            anywhere |= Q((f"{field}__icontains", word))
        rows = rows.filter(anywhere)
    return rows


def _choice(model: ModelSpec, gpu: GpuType | None, wish: Wish) -> Choice:
    query = {"model": model.name}
    label = model.name
    if gpu:
        count = wish.gpu_count or 1
        query |= {"gpu": gpu.slug, "gpu_count": str(count), "tensor_parallel_size": str(count)}
        label = f"{model.name} on {count} × {gpu.name}"
    return Choice(label=label, query=urlencode(query))
