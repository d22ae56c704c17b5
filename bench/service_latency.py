"""Latency and throughput of requests through the Service, beside direct to the pod.

Short completions from a pod in the cluster, each over a new connection, in blocks that take turns: one after
the other for the latency, four at a time for the throughput. Target: no difference beyond noise, which is how
much the blocks of the direct way differ among themselves.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from statistics import median, quantiles

from bench.figure import Figure
from bench.real import START_S, is_possible, real_stage
from e2e.tests.stage import CLIENT, Stage

BLOCKS = 8
LATENCY_REQUESTS, THROUGHPUT_REQUESTS = 50, 100
AT_ONCE = 4
MODEL = "ours"

ASK = """
import json, sys, time, urllib.request
from concurrent.futures import ThreadPoolExecutor
url, model, count, at_once = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
body = json.dumps({"model": model, "prompt": " ba be bi", "max_tokens": 8, "temperature": 0}).encode()

def ask(_):
    start = time.monotonic()
    request = urllib.request.Request(url + "/v1/completions", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as answer:
        answer.read()
    return time.monotonic() - start

start = time.monotonic()
with ThreadPoolExecutor(at_once) as pool:
    each = list(pool.map(ask, range(count)))
print(json.dumps({"each": each, "all": time.monotonic() - start}))
"""


def measure() -> list[Figure]:
    if not is_possible():
        return []
    with real_stage() as stage:
        stage.model(MODEL, preflight="Skip")
        stage.wait_ready(MODEL, START_S)
        (pod,) = stage.engines(MODEL)
        urls = (stage.url(MODEL), f"http://{pod['status']['podIP']}:8000")
        for url in urls:
            _block(stage, url, LATENCY_REQUESTS, 1)  # warm-up
        latency = _in_turns(stage, urls, LATENCY_REQUESTS, 1)
        throughput = _in_turns(stage, urls, THROUGHPUT_REQUESTS, AT_ONCE)
    milliseconds = [[[1000 * each for each in block["each"]] for block in way] for way in latency]
    rates = [[THROUGHPUT_REQUESTS / block["all"] for block in way] for way in throughput]
    return [
        _figure("latency p50", "ms", milliseconds, median),
        _figure("latency p99", "ms", milliseconds, _p99),
        _figure(
            f"requests a second, {AT_ONCE} at a time",
            "1/s",
            [[[rate] for rate in way] for way in rates],
            median,
        ),
    ]


def _in_turns(stage: Stage, urls: Sequence[str], count: int, at_once: int) -> list[list[dict]]:
    """Blocks of each way; which of them comes first takes turns too."""
    ways: list[list[dict]] = [[] for _ in urls]
    for number in range(BLOCKS):
        order = list(enumerate(urls))
        for way, url in order if number % 2 else reversed(order):
            ways[way].append(_block(stage, url, count, at_once))
    return ways


def _block(stage: Stage, url: str, count: int, at_once: int) -> dict:
    return json.loads(stage.execute(CLIENT, "python3", "-c", ASK, url, MODEL, str(count), str(at_once)))


def _p99(values: Sequence[float]) -> float:
    return quantiles(values, n=100)[98]


def _figure(
    what: str, unit: str, ways: list[list[list[float]]], summary: Callable[[Sequence[float]], float]
) -> Figure:
    """The ratio of the whole of both ways, held against the blocks of the direct one."""
    service, direct = (summary([each for block in way for each in block]) for way in ways)
    blocks = [summary(block) for block in ways[1]]
    noise = max(abs(block - direct) for block in blocks)
    return Figure(
        f"{what} through the Service",
        service / direct,
        f"times direct ({service:.1f} {unit})",
        "no difference beyond noise",
        abs(service - direct) <= noise,
        f"direct to the pod {direct:.1f} {unit}, its blocks {min(blocks):.1f} to {max(blocks):.1f}",
    )
