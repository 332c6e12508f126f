"""The only file that talks to Hugging Face: a model's configuration, and what its weights weigh.

The hub's own settings are honoured: HF_TOKEN, HF_ENDPOINT, HF_HUB_OFFLINE, HF_HOME and the usual proxies.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from planner.core.errors import BadInput, PlanningError, Unknown
from planner.readers.config import LARGEST_CONFIG_BYTES, read_config

TIMEOUT_SECONDS = 5.0
SITE = "https://huggingface.co"


@dataclass(frozen=True, slots=True, kw_only=True)
class HubModel:
    """What the hub says of a model; `parameters` counts them by stored dtype, empty where it does not say."""

    repo_id: str
    config: Mapping[str, Any]
    source: str
    parameters: Mapping[str, int] = field(default_factory=dict)


def fetch_model(repo_id: str, *, token: str | None = None, timeout_seconds: float = TIMEOUT_SECONDS) -> HubModel:
    """Return a model's configuration and parameter counts.

    Raises BadInput for what cannot be a repository's name, and Unknown where the hub has no such model, keeps it
    behind a gate, or cannot be reached and the local cache does not hold it either.
    """
    config = fetch_config(repo_id, token=token, timeout_seconds=timeout_seconds)
    return HubModel(
        repo_id=repo_id,
        config=config,
        source=f"{SITE}/{repo_id}/blob/main/config.json",
        parameters=_parameters(repo_id, token, timeout_seconds),
    )


def fetch_config(repo_id: str, *, token: str | None = None, timeout_seconds: float = TIMEOUT_SECONDS) -> dict[str, Any]:
    """Return a model's `config.json`, with its `hf_quant_config.json` merged in; raises as `fetch_model` does."""
    config = _file(repo_id, "config.json", token, timeout_seconds)
    if config is None:
        raise _unknown(
            f"{repo_id} has no config.json on the hub, so it is no model that vLLM can describe.",
            "name the repository of the model itself, or give its config.json",
        )
    return read_config(config, quantization=_file(repo_id, "hf_quant_config.json", token, timeout_seconds))


def _file(repo_id: str, name: str, token: str | None, timeout_seconds: float) -> bytes | None:
    """Return one small file of a repository, or None when it has no such file; the local cache is the fallback."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, OfflineModeIsEnabled
    from huggingface_hub.errors import HTTPError as ClientError

    try:
        if _offline():
            raise OfflineModeIsEnabled
        return _download(repo_id, name, token, timeout_seconds)
    except EntryNotFoundError:
        return None
    except (HfHubHTTPError, ValueError) as error:
        raise _explained(repo_id, error) from None
    except (OSError, ClientError) as error:
        cached = try_to_load_from_cache(repo_id, name)
        if isinstance(cached, str):
            return Path(cached).read_bytes()
        if name != "config.json" and isinstance(try_to_load_from_cache(repo_id, "config.json"), str):
            return None
        raise _explained(repo_id, error) from None


def _download(repo_id: str, name: str, token: str | None, timeout_seconds: float) -> bytes:
    """Ask once and read no more than a configuration can have; hf_hub_download would retry for half a minute."""
    from huggingface_hub import get_session, hf_hub_url
    from huggingface_hub.utils import (
        build_hf_headers,
        hf_raise_for_status,
        validate_repo_id,
    )

    validate_repo_id(repo_id)
    url, headers = hf_hub_url(repo_id, name, endpoint=_endpoint()), build_hf_headers(token=token)
    session = get_session()
    with session.stream("GET", url, headers=headers, timeout=timeout_seconds, follow_redirects=True) as response:
        hf_raise_for_status(response)
        read = b""
        for chunk in response.iter_bytes():
            read += chunk
            if len(read) > LARGEST_CONFIG_BYTES:
                raise _unknown(f"{name} of {repo_id} is too large for a configuration.", "give the config.json by hand")
    return read


def _parameters(repo_id: str, token: str | None, timeout_seconds: float) -> dict[str, int]:
    """Return parameter counts by dtype; a hub that does not tell is no fault."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HTTPError as ClientError

    try:
        info = HfApi(endpoint=_endpoint(), token=token).model_info(
            repo_id, timeout=timeout_seconds, expand=["safetensors"]
        )
    except (OSError, ValueError, ClientError):
        return {}
    return dict(info.safetensors.parameters) if info.safetensors else {}


def _explained(repo_id: str, error: Exception) -> PlanningError:
    """Return the planner's error for the hub's: what happened, and what to do about it."""
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, HFValidationError, RepositoryNotFoundError

    if isinstance(error, HFValidationError):
        return BadInput(field="model", message=f"{repo_id[:80]!r} is no repository's name.", fix="write owner/name")
    if isinstance(error, GatedRepoError):
        fix = f"accept its terms at {SITE}/{repo_id} and set HF_TOKEN, or give its config.json"
        return _unknown(f"{repo_id} is behind a gate on the hub.", fix)
    if isinstance(error, RepositoryNotFoundError):
        fix = "check the name; for a private one set HF_TOKEN, or give its config.json"
        return _unknown(f"The hub has no model {repo_id}, or none that this token may see.", fix)
    if isinstance(error, HfHubHTTPError):
        return _unknown(f"The hub answered {_status(error)} for {repo_id}.", "try again later, or give its config.json")
    if _offline():
        fix = "unset HF_HUB_OFFLINE, or give its config.json"
        return _unknown(f"{repo_id} is not in the local cache, and HF_HUB_OFFLINE keeps from asking the hub.", fix)
    fix = "check the connection, a proxy (HTTPS_PROXY) or a mirror (HF_ENDPOINT), or give its config.json"
    return _unknown(f"The hub cannot be reached, so {repo_id} is not known.", fix)


def _status(error: Exception) -> str:
    response = getattr(error, "response", None)
    return f"{response.status_code}" if response is not None else type(error).__name__


def _endpoint() -> str | None:
    return os.environ.get("HF_ENDPOINT", "").rstrip("/") or None


def _offline() -> bool:
    return os.environ.get("HF_HUB_OFFLINE", "").strip().lower() in {"1", "true", "yes", "on"}


def _unknown(message: str, fix: str) -> Unknown:
    return Unknown(field="model", message=message, fix=fix)
