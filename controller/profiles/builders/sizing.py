"""From a published model to seconds and bytes a layer: what one accelerator would take."""

from __future__ import annotations

from dataclasses import dataclass

from controller.profiles.builders.spec import Layer
from controller.profiles.catalogue import Model


@dataclass(frozen=True, slots=True)
class Accelerator:
    """How fast a worker computes."""

    flops: float = 312e12
    "Peak, in floating-point operations a second (NVIDIA A100: 312e12 dense BF16)."
    efficiency: float = 0.4
    "Share of the peak that training reaches (Megatron-LM reports 0.4 to 0.5)."

    def seconds(self, operations: float) -> float:
        """Seconds for so many operations."""
        return operations / (self.flops * self.efficiency)


def layers_of(
    model: Model,
    micro_batch: int,
    accelerator: Accelerator | None = None,
    element_bytes: float = 2.0,
    recompute: bool = False,
) -> tuple[Layer, ...]:
    """The model's layers for micro-batches of so many samples.

    A backward pass has twice the operations of a forward one, three times where activations are
    recomputed. `element_bytes` of gradients and activations: 2 is BF16, 4 FP32.
    """
    unit = accelerator or Accelerator()
    layers = []
    for layer in model.layers:
        forward = unit.seconds(layer.flops * micro_batch)
        output = layer.activations * micro_batch * element_bytes
        layers.append(
            Layer(
                forward,
                forward * (3 if recompute else 2),
                layer.parameters * element_bytes,
                output,
                layer.expert_parameters * element_bytes,
                output * layer.routed,
            )
        )
    return tuple(layers)
