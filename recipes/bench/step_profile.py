"""Where the time of a pretraining step goes, by kinds of work; and what its products of matrices take alone: the floor.

A few steps of `bertkit bench pretrain` run under torch's profiler, which gives the shares; before, as long without it, which
gives the speed. Then every product that a step asks for is made by itself, in the shapes and layouts of the step, over and over:
a step cannot take less time than their sum, so that is the best that anything around them could reach.

Command:  python recipes/bench/step_profile.py --size tiny [--batch-size 32] [--precision auto] [--corpus FILE --tokenizer FILE]
Hardware: a CPU, otherwise idle.
Time:     a minute; base two.
Expected: one JSON line: shares of the time by kind, and as shares of a 2048 x 2048 x 2048 product what was reached and the floor.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from statistics import median
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from bertkit.bench.machine import machine_facts, product_rate
from bertkit.bench.pretrain import prepare
from bertkit.jobs.console import Console
from bertkit.jobs.start import Machine
from bertkit.settings.bench import BenchPretrainSettings

KINDS = {
    "products of matrices": ("mm", "addmm", "linear", "mkl_linear", "mkldnn_linear"),
    "batched products of attention": ("bmm", "baddbmm"),
    "softmax and its slope": ("_softmax", "_softmax_backward_data", "_log_softmax", "exp", "exp_", "logsumexp", "amax"),
    "dropout": ("bernoulli_", "random_", "native_dropout", "native_dropout_backward", "rand", "uniform_", "ge", "lt"),
    "GELU and its slope": ("gelu", "gelu_backward"),
    "LayerNorm and its slope": ("native_layer_norm", "native_layer_norm_backward"),
    "AdamW and the gradients' norm": ("_fused_adamw_", "_foreach_norm", "linalg_vector_norm", "_foreach_mul_", "stack"),
    "copies": ("copy_", "cat", "index_copy_", "index_select", "index", "gather", "clone"),
    "sums": ("sum", "add_", "add", "mul", "mul_", "sub", "sub_", "div_"),
    "embeddings": ("embedding", "embedding_dense_backward", "index_add_", "index_put_", "_index_put_impl_"),
    "zeros": ("zero_", "fill_"),
}
PRODUCTS = {"mm", "addmm", "bmm", "baddbmm", "addmm_", "baddbmm_"}
TRIES = 7


class Products(TorchDispatchMode):
    """Notes every product that is asked for: its operator, and the sizes and strides of what it takes."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: Counter[str] = Counter()
        self.kept: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = kwargs or {}
        if func._schema.name.partition("::")[2] in PRODUCTS:
            shaped = tree_map_only(torch.Tensor, lambda each: (tuple(each.shape), each.stride()), (args, kwargs))
            key = f"{func}{shaped}"
            self.asked[key] += 1
            if key not in self.kept:
                self.kept[key] = (func, *tree_map_only(torch.Tensor, _like, (args, kwargs)))
        return func(*args, **kwargs)

    @torch.no_grad()
    def seconds(self) -> float:
        """What all of them take, each alone."""
        return sum(count * _alone(*self.kept[key]) for key, count in self.asked.items())


def _like(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype).normal_(std=0.01)


def _alone(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> float:
    times = []
    for _ in range(TRIES):
        began = time.perf_counter()
        func(*args, **kwargs)
        times.append(time.perf_counter() - began)
    return median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="mini")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--precision", default="fp32", choices=("fp32", "auto", "bf16"))
    parser.add_argument("--corpus", action="append", default=[])
    parser.add_argument("--tokenizer")
    parser.add_argument("--seconds", type=float, default=10.0)
    given = parser.parse_args()
    settings = BenchPretrainSettings.model_validate(
        {
            "size": given.size,
            "batch_size": given.batch_size,
            "dropout": given.dropout,
            "corpus": tuple(given.corpus),
            "tokenizer": {"path": given.tokenizer},
            "device": {"device": "cpu", "precision": given.precision},
        }
    )
    machine = Machine.of(settings.device)
    work = prepare(settings, Console(quiet=True), machine)
    (side,) = work.sides()
    side.run(given.seconds / 4)
    ceiling = product_rate(machine.device, machine.precision)
    plain = side.run(given.seconds)
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        began = time.perf_counter()
        side.run(given.seconds)
        seen = time.perf_counter() - began
    with Products() as products:
        whole = side.run(0.0)  # one step
    side.close()
    floor = products.seconds()
    ceiling = max(ceiling, product_rate(machine.device, machine.precision))  # other guests slow it down now and then
    own = {event.key: event.self_cpu_time_total / 1e6 for event in profiled.key_averages()}
    kinds = {kind: sum(own.pop(f"aten::{name}", 0.0) for name in names) / seen for kind, names in KINDS.items()}
    rest = sorted(own.items(), key=lambda item: -item[1])[:8]
    shares = {name: round(share, 4) for name, share in kinds.items()} | {"the rest": round(1 - sum(kinds.values()), 4)}
    of_product = {
        "reached": plain.units / plain.seconds * work.flops() / ceiling,
        "floor": whole.units / floor * work.flops() / ceiling,
    }
    print(
        json.dumps(
            {
                "size": given.size,
                "dropout": given.dropout,
                "precision": machine.precision,
                "tokens_per_second": round(plain.units / plain.seconds),
                "kinds": shares,
                "largest of the rest": {name: round(seconds / seen, 4) for name, seconds in rest},
                "share of the product": {name: round(share, 3) for name, share in of_product.items()},
                "products_in_a_step": sum(products.asked.values()),
                "ceiling_flops": round(ceiling),
                "machine": machine_facts(machine.device).as_dict(),
            }
        )
    )


if __name__ == "__main__":
    main()
