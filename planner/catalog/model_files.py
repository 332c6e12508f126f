"""The models of the catalog: one file each, found by its name, so that a look-up reads one file."""

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from planner.catalog.tables import HERE, read_table
from planner.core.model import Model, model_facts, model_from_config
from planner.core.model_facts import ModelFacts
from planner.names import unknown_name

MODELS = HERE / "models"
SLASH = "__"


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A figure that somebody else states of a model, to check ours against."""

    value: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEntry:
    """A model's config.json, where it was read, and how far it is to be trusted.

    `filled` says, for each key that the file left out, where its value comes from; `abridged` names lists of layers
    that were shortened to patterns (`*` for any number). `revision` is that of the source.
    """

    name: str
    source: str
    revision: str
    confidence: str
    config: Mapping[str, Any]
    note: str = ""
    filled: Mapping[str, str] = field(default_factory=dict)
    abridged: tuple[str, ...] = ()
    published_parameters_billions: Published | None = None
    published_size_gib: Published | None = None

    @property
    def facts(self) -> ModelFacts:
        """What the configuration states, for any architecture."""
        return model_facts(self.config)

    @property
    def is_verified(self) -> bool:
        """Whether the file itself was read, and not a transcription of it."""
        return self.confidence == "high"


@cache
def model_names() -> tuple[str, ...]:
    """Return the names of all models, in the order of the alphabet; no file is opened."""
    stems = (path.stem for path in MODELS.iterdir() if path.suffix == ".json")
    return tuple(sorted((stem.replace(SLASH, "/", 1) for stem in stems), key=str.lower))


@cache
def known_names() -> tuple[str, ...]:
    """Return the names of all models and every other name they are known by; no model's file is opened."""
    return (*model_names(), *(row["alias"] for row in read_table("model_aliases.yaml")["aliases"]))


@cache
def model_entries() -> tuple[ModelEntry, ...]:
    """Return every model of the catalog."""
    return tuple(map(_read, model_names()))


def find_entry(name: str) -> ModelEntry:
    """Return the model of this name: in any case, without its organisation where that is clear, or by another name.

    Raises Unknown with the nearest names.
    """
    found = _by_any_name().get(_key(name))
    if found is None:
        raise unknown_name("model", name, model_names())
    return _read(found)


def full_name(name: str) -> str:
    """Return the name under which the catalog has a model, or the name itself where it has none."""
    return _by_any_name().get(_key(name), name)


def find_config(name: str) -> Mapping[str, Any]:
    """Return the config.json of a model of the catalog; raises Unknown."""
    return find_entry(name).config


def find_model(name: str) -> Model:
    """Return a model of the catalog for the arithmetic.

    Raises Unknown for a name that is not in the catalog, and for an architecture that cannot be planned.
    """
    return _model(find_entry(name).name)


@cache
def _model(name: str) -> Model:
    return model_from_config(_read(name).config, name=name)


def _key(name: str) -> str:
    return name.strip().strip("/").lower()


@cache
def _by_any_name() -> Mapping[str, str]:
    by_short_name = defaultdict(list)
    for name in model_names():
        by_short_name[name.rpartition("/")[2].lower()].append(name)
    clear = {short: names[0] for short, names in by_short_name.items() if len(names) == 1}
    aliases = {row["alias"].lower(): row["of"] for row in read_table("model_aliases.yaml")["aliases"]}
    return {**clear, **aliases, **{name.lower(): name for name in model_names()}}


@cache
def _read(name: str) -> ModelEntry:
    path = MODELS / f"{name.replace('/', SLASH, 1)}.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    parameters, size = content.get("published_parameters"), content.get("published_size")
    return ModelEntry(
        name=content["name"],
        source=content["source"],
        revision=content["revision"],
        confidence=content["confidence"],
        config=content["config"],
        note=content.get("note", ""),
        filled=content.get("filled", {}),
        abridged=tuple(content.get("abridged", ())),
        published_parameters_billions=Published(value=parameters["billions"], source=parameters["source"])
        if parameters
        else None,
        published_size_gib=Published(value=size["gib"], source=size["source"]) if size else None,
    )
