"""Records data-parallel training with the PyTorch profiler: `python traces/record_ddp.py OUT_DIR`.

Four processes on this machine train a ResNet-18 on random images over gloo and write what the
profiler saw, one `rank<N>.json` each. Needs torch >= 2.6 (CPU is enough), nothing else. Your own
script needs only the lines between the dashes. `python traces/prune_kineto.py` makes the recordings
small enough to ship.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Block(nn.Module):
    """Two 3x3 convolutions and the way round them (He et al., CVPR 2016)."""

    def __init__(self, into: int, out: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(into, out, 3, stride, 1, bias=False),
            nn.BatchNorm2d(out),
            nn.ReLU(inplace=True),
            nn.Conv2d(out, out, 3, 1, 1, bias=False),
            nn.BatchNorm2d(out),
        )
        self.around: nn.Module = nn.Identity()
        if stride > 1 or into != out:
            self.around = nn.Sequential(
                nn.Conv2d(into, out, 1, stride, bias=False), nn.BatchNorm2d(out)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.around(x))


def resnet18() -> nn.Module:
    """11,689,512 parameters."""
    blocks = []
    channels = 64
    for width in (64, 128, 256, 512):
        blocks += [Block(channels, width, 1 if width == 64 else 2), Block(width, width, 1)]
        channels = width
    return nn.Sequential(
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, 1),
        *blocks,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(512, 1000),
    )


def train(rank: int, options: argparse.Namespace) -> None:
    """One rank."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(options.port))
    dist.init_process_group("gloo", rank=rank, world_size=options.ranks)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = DistributedDataParallel(
        resnet18(), bucket_cap_mb=options.bucket_mb, broadcast_buffers=False
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    images = torch.randn(options.batch, 3, options.pixels, options.pixels)
    labels = torch.randint(1000, (options.batch,))
    # ---
    profiler = torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        schedule=torch.profiler.schedule(wait=0, warmup=3, active=options.iterations, repeat=1),
        record_shapes=True,
        on_trace_ready=lambda p: p.export_chrome_trace(f"{options.out}/rank{rank}.json"),
    )
    with profiler:
        for _ in range(3 + options.iterations):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
            profiler.step()
    # ---
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", help="folder for the recordings")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--iterations", type=int, default=8)
    parser.add_argument("--batch", type=int, default=4, help="images a rank and iteration")
    parser.add_argument("--pixels", type=int, default=48)
    parser.add_argument("--bucket-mb", type=float, default=14)
    parser.add_argument("--port", type=int, default=29517)
    chosen = parser.parse_args()
    Path(chosen.out).mkdir(parents=True, exist_ok=True)
    mp.spawn(train, args=(chosen,), nprocs=chosen.ranks)
