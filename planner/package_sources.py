"""Where packages come from: pip's settings told to uv, and uv's to pip, so that either tool finds what the other would.

Standard library only: it is read before anything is installed.
"""

import ast
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

UV_NAMES = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "client-cert": "SSL_CLIENT_CERT",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "proxy": "ALL_PROXY",
}
PIP_NAMES = {
    "UV_DEFAULT_INDEX": "PIP_INDEX_URL",
    "UV_INDEX_URL": "PIP_INDEX_URL",
    "UV_INDEX": "PIP_EXTRA_INDEX_URL",
    "UV_EXTRA_INDEX_URL": "PIP_EXTRA_INDEX_URL",
    "UV_FIND_LINKS": "PIP_FIND_LINKS",
    "UV_INSECURE_HOST": "PIP_TRUSTED_HOST",
    "SSL_CERT_FILE": "PIP_CERT",
}
OLDER_SPELLINGS = {"UV_DEFAULT_INDEX": "UV_INDEX_URL", "UV_INDEX": "UV_EXTRA_INDEX_URL"}
COMMA_SEPARATED = ("UV_FIND_LINKS",)


def pip_settings(config_list: str) -> dict[str, str]:
    """What `pip config list` prints, by option name; the environment's word (`:env:`) comes before a file's."""
    from_files: dict[str, str] = {}
    from_environment: dict[str, str] = {}
    for line in config_list.splitlines():
        key, found, quoted = line.partition("=")
        section, dot, option = key.rpartition(".")
        if found and dot and section in (":env:", "global", "install"):
            settings = from_environment if section == ":env:" else from_files
            settings[option] = str(ast.literal_eval(quoted))
    return from_files | from_environment


def for_uv(pip: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that tell uv what pip was told, leaving alone whatever uv was told itself."""
    variables: dict[str, str] = {}
    for option, value in pip.items():
        name = UV_NAMES.get(option, "")
        already = name in environment or OLDER_SPELLINGS.get(name, name) in environment
        places = [place for place in value.split() if is_there(place)]
        if name and places and not already:
            variables[name] = ("," if name in COMMA_SEPARATED else " ").join(places)
    return variables


def for_pip(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that tell pip what uv was told, leaving alone whatever pip was told itself."""
    return {
        pip_name: environment[uv_name].replace(",", " ") if uv_name in COMMA_SEPARATED else environment[uv_name]
        for uv_name, pip_name in PIP_NAMES.items()
        if environment.get(uv_name) and not environment.get(pip_name)
    }


def allows_an_index(pip: Mapping[str, str], environment: Mapping[str, str]) -> bool:
    """False where only local wheels may be used (pip's `no-index`)."""
    return pip.get("no-index", environment.get("UV_NO_INDEX", "")).lower() in ("", "0", "false", "no", "off")


def is_there(place: str) -> bool:
    """pip passes over a local folder that does not exist; uv stops at it, so it is left out."""
    parts = urlsplit(place)
    if parts.scheme == "file":
        return Path(parts.path).exists()
    return not place.startswith("/") or Path(place).exists()
