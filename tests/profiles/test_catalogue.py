"""Layer tables add up to what was published."""

from __future__ import annotations

import pytest

from controller.model.errors import BadInput
from controller.profiles import catalogue

EXACT = {  # torchvision's and Hugging Face's counts
    "resnet18": 11_689_512,
    "resnet50": 25_557_032,
    "resnet101": 44_549_160,
    "resnet152": 60_192_808,
    "vgg11": 132_863_336,
    "vgg16": 138_357_544,
    "vgg19": 143_667_240,
    "alexnet": 61_100_840,
    "bertbase": 109_482_240,
    "bertlarge": 335_141_888,
    "gpt2": 124_439_808,
    "gpt2medium": 354_823_168,
    "gpt2large": 774_030_080,
    "gpt2xl": 1_557_611_200,
    "llama7b": 6_738_415_616,
    "llama13b": 13_015_864_320,
    "llama65b": 65_285_660_672,
    "llama270b": 68_976_648_192,
    "mixtral8x7b": 46_702_792_704,
}


@pytest.mark.parametrize(("name", "parameters"), EXACT.items())
def test_parameters_are_the_published_ones(name: str, parameters: int) -> None:
    assert catalogue.model(name).parameters == pytest.approx(parameters, abs=0.5)


@pytest.mark.parametrize(("name", "parameters"), [("gpt3-175b", 174.6e9), ("gpt3-13b", 12.85e9)])
def test_gpt3_is_what_its_paper_rounds_to(name: str, parameters: float) -> None:
    assert catalogue.model(name).parameters == pytest.approx(parameters, rel=0.005)


@pytest.mark.parametrize(
    ("name", "giga_multiply_adds"),
    [("resnet18", 1.82), ("resnet50", 4.09), ("resnet152", 11.51), ("vgg16", 15.47), ("vgg11", 7.61)],
)  # fmt: skip
def test_operations_are_torchvisions(name: str, giga_multiply_adds: float) -> None:
    flops = catalogue.model(name).flops
    assert flops / 2e9 == pytest.approx(giga_multiply_adds, rel=0.02)


def test_names_are_found_however_they_are_written_and_unknown_ones_listed() -> None:
    assert catalogue.model("ResNet-50 (batch size 64)") == catalogue.model("resnet50")
    assert catalogue.model("GPT_13B").name == "gpt313b"
    assert catalogue.model("inception4").parameters == pytest.approx(42_679_816)
    with pytest.raises(BadInput, match="resnet50, resnet101"):
        catalogue.model("resnet51")


@pytest.mark.parametrize("name", catalogue.names())
def test_every_model_has_layers_and_a_source(name: str) -> None:
    model = catalogue.model(name)
    assert model.source
    assert model.flops > 0
    assert all(layer.activations > 0 for layer in model.layers)
