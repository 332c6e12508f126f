"""Models from Hugging Face, against a real server on this machine that answers as the hub does."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from planner import hub
from planner.core.errors import BadInput, Unknown

CONFIG = {"architectures": ["LlamaForCausalLM"], "hidden_size": 64}


class Hub(BaseHTTPRequestHandler):
    """Files by path; anything else is what the hub says of a repository or a file that is not there."""

    files: ClassVar[dict[str, bytes]] = {
        "/open/model/resolve/main/config.json": json.dumps(CONFIG).encode(),
        "/quantised/model/resolve/main/config.json": json.dumps(CONFIG).encode(),
        "/quantised/model/resolve/main/hf_quant_config.json": b'{"quantization": {"quant_algo": "FP8"}}',
        "/broken/model/resolve/main/config.json": b'{"hidden_size": ',
        "/huge/model/resolve/main/config.json": b" " * (9 << 20),
        "/api/models/open/model": b'{"id": "open/model", "safetensors": {"parameters": {"BF16": 1000}, "total": 1000}}',
    }
    refusals: ClassVar[dict[str, tuple[int, str]]] = {
        "/gated/": (403, "GatedRepo"),
        "/missing/": (404, "RepoNotFound"),
        "/down/": (503, ""),
    }
    tokens: ClassVar[list[str]] = []

    def do_GET(self):
        path = self.path.partition("?")[0]
        self.tokens.append(self.headers.get("Authorization", ""))
        if path in self.files:
            return self._send(200, "", self.files[path])
        status, code = next(
            (r for prefix, r in self.refusals.items() if path.startswith(prefix)), (404, "EntryNotFound")
        )
        return self._send(status, code, b"")

    def _send(self, status, code, body):
        self.send_response(status)
        if code:
            self.send_header("X-Error-Code", code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def server(monkeypatch, tmp_path):
    listening = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{listening.server_port}")
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    Hub.tokens.clear()
    yield listening
    listening.shutdown()
    listening.server_close()
    thread.join()


def test_a_model_comes_with_its_configuration_source_and_parameters(server):
    model = hub.fetch_model("open/model")
    assert model.config == CONFIG
    assert model.parameters == {"BF16": 1000}
    assert model.source == "https://huggingface.co/open/model/blob/main/config.json"


def test_a_quantised_model_brings_the_file_beside_its_config(server):
    assert hub.fetch_config("quantised/model")["quantization_config"] == {"quantization": {"quant_algo": "FP8"}}


def test_the_token_goes_with_the_request(server):
    hub.fetch_config("open/model", token="hf_mine")
    assert set(Hub.tokens) == {"Bearer hf_mine"}


@pytest.mark.parametrize(
    ("repo_id", "said", "remedy"),
    [
        ("gated/model", "behind a gate", "accept its terms at https://huggingface.co/gated/model"),
        ("missing/model", "has no model missing/model", "check the name"),
        ("empty/model", "has no config.json", "name the repository of the model itself"),
        ("down/model", "answered 503", "try again later"),
        ("huge/model", "too large", "by hand"),
    ],
)
def test_what_the_hub_will_not_give_is_unknown_with_a_remedy(server, repo_id, said, remedy):
    with pytest.raises(Unknown) as caught:
        hub.fetch_config(repo_id)
    assert said in caught.value.message
    assert remedy in caught.value.fix


def test_a_broken_config_on_the_hub_is_said_to_be_broken(server):
    with pytest.raises(BadInput, match="not valid JSON"):
        hub.fetch_config("broken/model")


@pytest.mark.parametrize("name", ["a b/c", "a/b/c", "../etc", "x" * 200])
def test_what_cannot_be_a_repository_is_bad_input(server, name):
    with pytest.raises(BadInput, match="no repository's name"):
        hub.fetch_config(name)
    assert Hub.tokens == []


def test_an_unreachable_hub_is_said_to_be_unreachable(server, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(Unknown, match="cannot be reached"):
        hub.fetch_config("open/model")


def test_offline_mode_asks_nobody(server, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(Unknown, match="HF_HUB_OFFLINE"):
        hub.fetch_config("open/model")
    assert Hub.tokens == []


def test_offline_the_local_cache_answers(server, monkeypatch, tmp_path):
    repository = tmp_path / "models--open--model"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("0" * 40)
    snapshot = repository / "snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text(json.dumps({"hidden_size": 32}))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert hub.fetch_config("open/model") == {"hidden_size": 32}
