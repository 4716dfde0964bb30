"""Published models: their layers, parameters, operations and activations, with sources.

Layer tables are built from the published architectures; the tests hold the totals against the
published parameter counts. Operations are multiply-adds x 2 of a forward pass over one sample.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from controller.model.errors import BadInput


@dataclass(frozen=True, slots=True)
class ModelLayer:
    """One layer of a model, for one sample."""

    name: str
    "What its authors call it, more or less."
    parameters: float
    "Trained parameters, experts not counted."
    flops: float
    "Floating-point operations of the forward pass over one sample."
    activations: float
    "Elements of its output for one sample."
    expert_parameters: float = 0.0
    "Parameters of all its experts (mixture of experts)."
    routed: int = 0
    "Experts each token goes to; 0 for a dense layer."


@dataclass(frozen=True, slots=True)
class Model:
    """A published model."""

    name: str
    "Lower case, as in `resnet50`."
    layers: tuple[ModelLayer, ...]
    "In forward order."
    source: str
    "Where the architecture and the parameter count are published."

    @property
    def parameters(self) -> float:
        """Trained parameters, experts included."""
        return sum(layer.parameters + layer.expert_parameters for layer in self.layers)

    @property
    def flops(self) -> float:
        """Floating-point operations of the forward pass over one sample."""
        return sum(layer.flops for layer in self.layers)


def model(name: str) -> Model:
    """A model by name; case, dashes and spaces do not matter. Raises `BadInput` naming all."""
    key = _plain(name)
    if key not in _MODELS:
        raise BadInput(f"no model {name!r} in the catalogue: expected one of {', '.join(_MODELS)}")
    return _build(key)


def names() -> tuple[str, ...]:
    """All names in the catalogue."""
    return tuple(_MODELS)


@cache
def _build(key: str) -> Model:
    make, source = _MODELS[key]
    return Model(key, tuple(make()), source)


def _plain(name: str) -> str:
    key = re.sub(r"[-_ .]", "", name.lower())
    key = re.sub(r"\(batchsize\d+\)", "", key)
    return _ALIASES.get(key, key)


def _conv(
    name: str, size: int, into: int, out: int, kernel: int, bias: bool, norm: bool
) -> ModelLayer:
    """A convolution onto size x size pixels, with its batch norm."""
    weights = into * out * kernel * kernel
    extra = (out if bias else 0) + (2 * out if norm else 0)
    return ModelLayer(name, weights + extra, 2.0 * weights * size * size, out * size * size)


def _linear(name: str, into: int, out: int) -> ModelLayer:
    return ModelLayer(name, into * out + out, 2.0 * into * out, out)


def _resnet(blocks: tuple[int, ...], bottleneck: bool) -> Iterator[ModelLayer]:
    """ResNet on 224 x 224 pixels; a block is one layer."""
    yield _conv("conv1", 112, 3, 64, 7, bias=False, norm=True)
    channels = 64
    for stage, count in enumerate(blocks):
        width, size = 64 << stage, 56 >> stage
        out = width * 4 if bottleneck else width
        for index in range(count):
            if bottleneck:
                # the 3 x 3 convolution has the stride, so the first 1 x 1 sees the larger image
                first = size * 2 if stage and not index else size
                convs = [
                    (first, channels, width, 1),
                    (size, width, width, 3),
                    (size, width, out, 1),
                ]
            else:
                convs = [(size, channels, width, 3), (size, width, out, 3)]
            if channels != out:
                convs.append((size, channels, out, 1))
            parts = [_conv("", *shape, bias=False, norm=True) for shape in convs]
            yield ModelLayer(
                f"layer{stage + 1}.{index}",
                sum(part.parameters for part in parts),
                sum(part.flops for part in parts),
                out * size * size,
            )
            channels = out
    yield _linear("fc", channels, 1000)


def _vgg(plan: str) -> Iterator[ModelLayer]:
    """VGG on 224 x 224 pixels: plan `64 64 M 128 ...`, M a pooling."""
    channels, size = 3, 224
    for index, part in enumerate(plan.split()):
        if part == "M":
            size //= 2
            continue
        yield _conv(f"features.{index}", size, channels, int(part), 3, bias=True, norm=False)
        channels = int(part)
    yield _linear("classifier.0", channels * size * size, 4096)
    yield _linear("classifier.3", 4096, 4096)
    yield _linear("classifier.6", 4096, 1000)


def _alexnet() -> Iterator[ModelLayer]:
    for index, shape in enumerate(
        [(55, 3, 64, 11), (27, 64, 192, 5), (13, 192, 384, 3), (13, 384, 256, 3), (13, 256, 256, 3)]
    ):
        yield _conv(f"conv{index}", *shape, bias=True, norm=False)
    yield _linear("fc6", 9216, 4096)
    yield _linear("fc7", 4096, 4096)
    yield _linear("fc8", 4096, 1000)


def _whole(parameters: float, flops: float, parts: int) -> Iterator[ModelLayer]:
    """A model whose inner structure does not matter here: equal parts."""
    for index in range(parts):
        yield ModelLayer(f"part{index}", parameters / parts, flops / parts, 1e5)


def _bert(layers: int, hidden: int) -> Iterator[ModelLayer]:
    seq = 512
    embedding = (30522 + 512 + 2) * hidden + 2 * hidden
    yield ModelLayer("embeddings", embedding, 0.0, seq * hidden)
    weights = 12 * hidden * hidden + 13 * hidden
    for index in range(layers):
        yield _transformer(f"layer.{index}", weights, seq, hidden)
    yield ModelLayer("pooler", hidden * hidden + hidden, 2.0 * hidden * hidden, hidden)


def _gpt(layers: int, hidden: int, seq: int) -> Iterator[ModelLayer]:
    """GPT-2 and GPT-3: learned positions, tied output embedding."""
    vocabulary = 50257
    yield ModelLayer("wte+wpe", (vocabulary + seq) * hidden, 0.0, seq * hidden)
    weights = 12 * hidden * hidden + 13 * hidden
    for index in range(layers):
        yield _transformer(f"h.{index}", weights, seq, hidden)
    yield ModelLayer("ln_f+head", 2 * hidden, 2.0 * vocabulary * hidden * seq, seq * vocabulary)


def _llama(
    layers: int, hidden: int, ffn: int, seq: int, kv: float = 1.0, experts: int = 0
) -> Iterator[ModelLayer]:
    """LLaMA, Llama 2, Mixtral: gated feed-forward, kv = share of key-value heads, no biases."""
    vocabulary = 32000
    yield ModelLayer("embed", vocabulary * hidden, 0.0, seq * hidden)
    attention = (2 + 2 * kv) * hidden * hidden + 2 * hidden
    forward = 3 * hidden * ffn
    for index in range(layers):
        if not experts:
            yield _transformer(f"layers.{index}", attention + forward, seq, hidden)
            continue
        dense = _transformer("", attention + hidden * experts + 2 * forward, seq, hidden)
        yield ModelLayer(
            f"layers.{index}", attention + hidden * experts, dense.flops, seq * hidden,
            experts * forward, 2,
        )  # fmt: skip
    yield ModelLayer(
        "norm+head", hidden + vocabulary * hidden, 2.0 * vocabulary * hidden * seq, seq * vocabulary
    )


def _transformer(name: str, weights: float, seq: int, hidden: int) -> ModelLayer:
    flops = 2.0 * weights * seq + 4.0 * seq * seq * hidden
    return ModelLayer(name, weights, flops, seq * hidden)


_VGG11 = "64 M 128 M 256 256 M 512 512 M 512 512 M"
_VGG16 = "64 64 M 128 128 M 256 256 256 M 512 512 512 M 512 512 512 M"
_VGG19 = "64 64 M 128 128 M 256 256 256 256 M 512 512 512 512 M 512 512 512 512 M"

_HE = "He et al., Deep residual learning for image recognition, CVPR 2016; as in torchvision"
_SIMONYAN = "Simonyan, Zisserman, Very deep convolutional networks, ICLR 2015; as in torchvision"
_DEVLIN = "Devlin et al., BERT, NAACL 2019; as in the uncased release"
_GPT2 = "Radford et al., Language models are unsupervised multitask learners, 2019"
_BROWN = "Brown et al., Language models are few-shot learners, NeurIPS 2020, table 2.1"
_LLAMA = "Touvron et al., LLaMA, 2023, table 2"

_MODELS: dict[str, tuple[Callable[[], Iterator[ModelLayer]], str]] = {
    "resnet18": (lambda: _resnet((2, 2, 2, 2), bottleneck=False), _HE),
    "resnet50": (lambda: _resnet((3, 4, 6, 3), bottleneck=True), _HE),
    "resnet101": (lambda: _resnet((3, 4, 23, 3), bottleneck=True), _HE),
    "resnet152": (lambda: _resnet((3, 8, 36, 3), bottleneck=True), _HE),
    "vgg11": (lambda: _vgg(_VGG11), _SIMONYAN),
    "vgg16": (lambda: _vgg(_VGG16), _SIMONYAN),
    "vgg19": (lambda: _vgg(_VGG19), _SIMONYAN),
    "alexnet": (_alexnet, "Krizhevsky, One weird trick, 2014; as in torchvision"),
    "inception3": (
        lambda: _whole(23_834_568, 11.4e9, 16),
        "Szegedy et al., CVPR 2016; torchvision",
    ),
    "inception4": (lambda: _whole(42_679_816, 24.6e9, 22), "Szegedy et al., AAAI 2017; timm"),
    "googlenet": (lambda: _whole(6_624_904, 3.0e9, 11), "Szegedy et al., CVPR 2015; torchvision"),
    "shufflenetv2x10": (
        lambda: _whole(2_278_604, 2 * 146e6, 19),
        "Ma et al., ShuffleNet V2, ECCV 2018; as in torchvision",
    ),
    "bertbase": (lambda: _bert(12, 768), _DEVLIN),
    "bertlarge": (lambda: _bert(24, 1024), _DEVLIN),
    "gpt2": (lambda: _gpt(12, 768, 1024), _GPT2),
    "gpt2medium": (lambda: _gpt(24, 1024, 1024), _GPT2),
    "gpt2large": (lambda: _gpt(36, 1280, 1024), _GPT2),
    "gpt2xl": (lambda: _gpt(48, 1600, 1024), _GPT2),
    "gpt313b": (lambda: _gpt(40, 5120, 2048), _BROWN),
    "gpt3175b": (lambda: _gpt(96, 12288, 2048), _BROWN),
    "llama7b": (lambda: _llama(32, 4096, 11008, 2048), _LLAMA),
    "llama13b": (lambda: _llama(40, 5120, 13824, 2048), _LLAMA),
    "llama65b": (lambda: _llama(80, 8192, 22016, 2048), _LLAMA),
    "llama270b": (lambda: _llama(80, 8192, 28672, 4096, 1 / 8), "Touvron et al., Llama 2, 2023"),
    "mixtral8x7b": (
        lambda: _llama(32, 4096, 14336, 4096, 1 / 4, 8),
        "Jiang et al., Mixtral of experts, 2024, table 1",
    ),
    "transformer": (
        lambda: _whole(65e6, 2 * 65e6 * 128, 12),
        "Vaswani et al., Attention is all you need, NeurIPS 2017, table 3, base: 65e6",
    ),
    "recommendation": (
        lambda: _whole(24_511_308, 2 * 24.5e6, 4),
        (
            "Liang et al., Variational autoencoders for collaborative filtering, WWW 2018: "
            "20108-600-200-600-20108 on ML-20M"
        ),
    ),
    "lm": (
        lambda: _whole(13_954_478, 2 * 14e6 * 35, 4),
        "PyTorch's word_language_model on WikiText-2: 2 LSTM layers of 200, 33278 words",
    ),
    "cyclegan": (
        lambda: _whole(28_286_344, 4 * 57e9, 8),
        "Zhu et al., ICCV 2017: two generators of 11,378,179, two discriminators of 2,764,993",
    ),
    "dqn": (lambda: _whole(1_693_362, 2 * 9.3e6, 5), "Mnih et al., Nature 2015, 18 actions"),
    "a2c": (lambda: _whole(1_693_362, 2 * 9.3e6, 5), "Mnih et al., ICML 2016, the DQN network"),
    "a3c": (lambda: _whole(1_693_362, 2 * 9.3e6, 5), "Mnih et al., ICML 2016, the DQN network"),
}

_ALIASES = {
    "bert": "bertlarge",
    "inceptionv3": "inception3",
    "inceptionv4": "inception4",
    "gpt2small": "gpt2",
    "gpt2124m": "gpt2",
    "gpt3": "gpt3175b",
    "gpt175b": "gpt3175b",
    "gpt13b": "gpt313b",
    "llama": "llama7b",
    "llama27b": "llama7b",
    "mixtral": "mixtral8x7b",
}
