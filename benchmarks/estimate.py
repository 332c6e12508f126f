"""How long an estimate takes: in the arithmetic alone, and through the API of a freshly started web server.

Run it with `python3 benchmarks/estimate.py`; it keeps nothing, and its exit code is 1 when a target is missed.
"""

import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from planner.core.estimate import estimate  # noqa: E402 -- the project is not installed, it is run from its folder
from planner.core.sweep import sweep  # noqa: E402
from planner.questions import question_from_inputs  # noqa: E402

INPUTS = {
    "model": "meta-llama/Meta-Llama-3-70B-Instruct",
    "gpu": "a100-sxm4-80gb",
    "gpu_count": 4,
    "vllm_version": "0.32.0",
    "args": {"tensor_parallel_size": 4, "gpu_memory_utilization": 0.9, "max_model_len": 8192},
}
FAMILIES = {
    "dense": ("meta-llama/Meta-Llama-3-70B-Instruct", 4),
    "sliding windows": ("google/gemma-3-27b-it", 4),
    "heads that differ by layer": ("google/gemma-4-31B-it", 4),
    "chunked attention, experts": ("meta-llama/Llama-4-Scout-17B-16E-Instruct", 8),
    "experts": ("Qwen/Qwen3-235B-A22B", 8),
    "experts in MXFP4, sinks": ("openai/gpt-oss-120b", 2),
    "latent attention": ("deepseek-ai/DeepSeek-V3", 8),
    "sparse latent attention": ("deepseek-ai/DeepSeek-V3.2", 8),
    "compressed attention": ("deepseek-ai/DeepSeek-V4-Flash", 8),
    "gated delta net": ("Qwen/Qwen3-Next-80B-A3B-Instruct", 4),
    "gated delta net, a tower": ("Qwen/Qwen3.6-27B", 2),
    "state space, experts": ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 2),
    "Mamba 1": ("ai21labs/Jamba-v0.1", 2),
    "a tower": ("Qwen/Qwen2.5-VL-72B-Instruct", 8),
    "NVFP4, layer by layer": ("nvidia/Qwen3.6-35B-A3B-NVFP4", 1),
}
SWEPT_MODEL = ("google/gemma-3-27b-it", 8)
SWEPT = {
    "tensor_parallel_size": [1, 2, 4, 8],
    "max_num_batched_tokens": [2048, 4096, 8192, 16384, 32768],
    "max_model_len": [4096, 8192, 16384, 32768, 65536],
    "gpu_memory_utilization": [round(0.5 + 0.0045 * step, 4) for step in range(100)],
}
FAMILY_ROUNDS = 50
CORE_ROUNDS = 500
API_ROUNDS = 300
API_CLIENTS = 8
API_REQUESTS = 1500
CORE_MEDIAN_MS, API_MEDIAN_MS, API_PER_SECOND, SWEEP_SECONDS = 2.0, 25.0, 100.0, 1.0
STARTED_WITHIN_SECONDS = 60


def main() -> int:
    """Measure, print a table, and say by the exit code whether every target is met."""
    core = timed(core_estimate(INPUTS), CORE_ROUNDS)
    families = {name: timed(core_estimate(family_inputs(*asked)), FAMILY_ROUNDS) for name, asked in FAMILIES.items()}
    swept = sweep_seconds()
    with service() as (port, token):
        alone = timed(Client(port, token).estimate, API_ROUNDS)
        per_second = throughput(port, token)
    rows = [
        ("core: one estimate, median", median(core), CORE_MEDIAN_MS, "ms"),
        ("core: one estimate, 95th percentile", p95(core), None, "ms"),
        *((f"core: {name}, median", median(taken), CORE_MEDIAN_MS, "ms") for name, taken in families.items()),
        ("core: a sweep of 10,000 configurations", swept, SWEEP_SECONDS, "s"),
        ("API: one estimate, median", median(alone), API_MEDIAN_MS, "ms"),
        ("API: one estimate, 95th percentile", p95(alone), None, "ms"),
        (f"API: {API_CLIENTS} clients together", per_second, API_PER_SECOND, "requests/s"),
    ]
    for label, value, target, unit in rows:
        bound = "" if target is None else f"{'at least' if unit == 'requests/s' else 'at most'} {target:g} {unit}"
        print(f"{label:<40}{value:>10.2f} {unit:<12}{bound}")
    met = all(is_met(value, target, unit) for _, value, target, unit in rows)
    print("All targets are met." if met else "A target is missed.")
    return 0 if met else 1


def is_met(value: float, target: float | None, unit: str) -> bool:
    """Times may not exceed their target, rates may not fall below it."""
    if target is None:
        return True
    return value >= target if unit == "requests/s" else value <= target


def family_inputs(model: str, gpus: int) -> dict[str, object]:
    return {
        "model": model,
        "gpu": "h200-sxm-141gb",
        "gpu_count": gpus,
        "vllm_version": "0.32.0",
        "args": {"tensor_parallel_size": gpus, "max_model_len": 32768},
    }


def core_estimate(inputs: dict[str, object]) -> Callable[[], object]:
    question = question_from_inputs(inputs)
    return lambda: estimate(question)


def sweep_seconds() -> float:
    question = question_from_inputs(family_inputs(*SWEPT_MODEL))
    start = time.perf_counter()
    sweep(question, SWEPT)
    return time.perf_counter() - start


def timed(act: Callable[[], object], rounds: int) -> list[float]:
    """Return the milliseconds of each round, after a tenth of them to warm up."""
    for _ in range(rounds // 10):
        act()
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        act()
        taken.append(1000 * (time.perf_counter() - start))
    return taken


def p95(values: list[float]) -> float:
    return quantiles(values, n=20)[-1]


def throughput(port: int, token: str) -> float:
    """Return the requests a second that a few clients get when each asks again as soon as it is answered."""

    def one_client(_: int) -> None:
        client = Client(port, token)
        for _ in range(API_REQUESTS // API_CLIENTS):
            client.estimate()

    start = time.perf_counter()
    with ThreadPoolExecutor(API_CLIENTS) as pool:
        list(pool.map(one_client, range(API_CLIENTS)))
    return API_REQUESTS / (time.perf_counter() - start)


class Client:
    """One kept-open connection that posts the same question."""

    def __init__(self, port: int, token: str) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self.headers = {"Authorization": f"Token {token}", "Content-Type": "application/json"}
        self.body = json.dumps(INPUTS)

    def estimate(self) -> None:
        self.connection.request("POST", "/api/v1/estimate", self.body, self.headers)
        response = self.connection.getresponse()
        answer = response.read()
        if response.status != 200:
            sys.exit(f"The API answered {response.status}: {answer[:300]!r}")


@contextmanager
def service() -> Iterator[tuple[int, str]]:
    """Run the web server alone, on a free port and with a database of its own; yield the port and a token."""
    with tempfile.TemporaryDirectory(prefix="planner-benchmark-") as home, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        environment = {**os.environ, "PLANNER_HOME": home, "DJANGO_SETTINGS_MODULE": "planner.settings"}
        environment.pop("DATABASE_URL", None)
        manage(environment, "prepare")
        token = manage(environment, "token", "benchmark", "--group", "viewer").split()[-1]
        command = [sys.executable, "-m", "gunicorn", "--config", "python:planner.web_server", "planner.wsgi"]
        server = subprocess.Popen(  # noqa: S603 -- our own server
            [*command, "--bind", f"127.0.0.1:{port}", "--log-level", "warning"], cwd=PROJECT, env=environment
        )
        try:
            wait_for(port)
            yield port, token
        finally:
            server.terminate()
            server.wait(timeout=30)


def manage(environment: dict[str, str], *arguments: str) -> str:
    done = subprocess.run(  # noqa: S603 -- our own commands
        [sys.executable, "manage.py", *arguments], cwd=PROJECT, env=environment, capture_output=True, text=True
    )
    if done.returncode != 0:
        sys.exit(f"manage.py {arguments[0]} failed: {done.stderr.strip()[-500:]}")
    return done.stdout


def wait_for(port: int) -> None:
    deadline = time.monotonic() + STARTED_WITHIN_SECONDS
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    sys.exit("The web server did not start.")


if __name__ == "__main__":
    sys.exit(main())
