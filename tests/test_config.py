"""Settings from TOML, the command line and Python by one validator, and each refusal in its words."""

import dataclasses
import datetime
from pathlib import Path
from typing import Any, Literal

import pytest

from glassformer import config
from glassformer.errors import UserError
from glassformer.model.settings import (
    ClassHeadSettings,
    EncoderDecoderSettings,
    LearnedSettings,
    ModelSettings,
    PatchesSettings,
    RotarySettings,
    Settings,
    TokensSettings,
)


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    data = {"name": 'quo"te\\ \U000e0001 ß\n', "train": {"lr": 3e-4, "betas": [0.9, 0.98], "inner": {"empty": {}}}}
    path.write_text(config.write_toml(data), encoding="utf-8")
    assert config.read_toml(path) == data


def refused(call: Any, *pieces: str) -> None:
    with pytest.raises(UserError) as caught:
        call()
    for piece in pieces:
        assert piece in str(caught.value)


def test_a_file_that_is_not_there_or_not_toml_is_named(tmp_path: Path) -> None:
    refused(lambda: config.read_toml(tmp_path / "no.toml"), "There is no file", "no.toml")
    refused(lambda: config.read_toml(tmp_path), str(tmp_path), "cannot be read: it is a folder. Give a TOML file")
    for content in (b"a = ", b"a = '\xff'", b"a = 1\na = 2"):
        (tmp_path / "bad.toml").write_bytes(content)
        refused(lambda: config.read_toml(tmp_path / "bad.toml"), "bad.toml cannot be read as TOML")
    (tmp_path / "bad.toml").write_bytes(b"a = 1\nb = '\xff'")
    refused(lambda: config.read_toml(tmp_path / "bad.toml"), "line 2 is not UTF-8. Save it as UTF-8.")


DECODER: dict[str, Any] = {"kind": "decoder_only"}


@pytest.mark.parametrize(
    ("data", "pieces"),
    [
        ({"kind": "encoder_olny"}, ["kind is 'encoder_olny' (did you mean encoder_only?)"]),
        ({"kind": "zzz"}, ["kind is 'zzz' (known: encoder_decoder, decoder_only, encoder_only)"]),
        ({"kind": ["decoder_only"]}, ["kind is ['decoder_only']"]),
        (DECODER | {"decoder": {"n_layer": 3}}, ["no setting decoder.n_layer (did you mean n_layers?)"]),
        (DECODER | {"decoder": {"attention": {"n_heds": 3}}}, ["decoder.attention.n_heds (did you mean n_heads?)"]),
        (DECODER | {"decoder": {"qqq": 3}}, ["no setting decoder.qqq (known: d_model, n_layers"]),
        (DECODER | {"decoder": {"norm": {"kind": "batch"}}}, ["decoder.norm.kind is 'batch' (known: layer, rms)"]),
        (DECODER | {"source": {"positions": {"kind": "lerned"}}}, ["kind is 'lerned' (did you mean learned?)"]),
        (DECODER | {"source": {"positions": {"kind": "learned", "max": 3}}}, ["positions.max (did you mean max_len?)"]),
        (DECODER | {"decoder": 5}, ["decoder is 5, but"]),
        (DECODER | {"decoder": {"n_layers": "6"}}, ["decoder.n_layers is '6', but it must be a whole number"]),
        (DECODER | {"decoder": {"n_layers": 6.0}}, ["decoder.n_layers is 6.0"]),
        (DECODER | {"decoder": {"n_layers": True}}, ["decoder.n_layers is True"]),
        (DECODER | {"tie_output": 1}, ["tie_output is 1, but it must be true or false"]),
        (DECODER | {"decoder": {"dropout": "0.1"}}, ["decoder.dropout is '0.1', but it must be a number"]),
        (DECODER | {"decoder": {"d_model": "none"}}, ["decoder.d_model is None"]),
        (DECODER | {"decoder": {"feed_forward": {"activation": "rely"}}}, ["activation is 'rely'", "'relu'"]),
        ({"kind": "encoder_only", "source": {"n_features": 4}}, ["source.kind is missing", "frames or vectors"]),
        ({"kind": "encoder_only", "source": {"kind": "frames", "strides": [1, "x"]}}, ["source.strides.1 is 'x'"]),
        ({"kind": "encoder_only", "source": {"kind": "vectors", "vocab_size": 3}}, ["no setting source.vocab_size"]),
        ({"kind": "encoder_only", "head": {"kind": "clas"}}, ["head.kind is 'clas' (did you mean class?)"]),
        (DECODER | {"decoder": {"d_model": 10}}, ["d_model is 10, which attention.n_heads 8 does not divide"]),
    ],
    ids=str,
)  # fmt: skip
def test_wrong_settings_are_named_with_the_nearest_right_one(data: dict[str, Any], pieces: list[str]) -> None:
    refused(lambda: config.parse(ModelSettings, data), *pieces)


def test_all_problems_come_in_one_error_each_once() -> None:
    data = DECODER | {"decoder": {"n_layer": 3, "d_model": "x", "attention": {"n_head": 3}}, "tie_output": "yes"}
    with pytest.raises(UserError) as caught:
        config.parse(ModelSettings, data, "recipe.toml")
    message = caught.value.message
    assert message.startswith("recipe.toml cannot be used: ")
    problems = message.removeprefix("recipe.toml cannot be used: ").removesuffix(".").split("; ")
    assert len(problems) == len(set(problems)) == 4
    for setting in ("decoder.n_layer ", "decoder.d_model ", "decoder.attention.n_head ", "tie_output "):
        assert sum(setting in problem for problem in problems) == 1


def test_a_union_without_a_kind_is_what_its_keys_say() -> None:
    def parse(**data: Any) -> Any:
        return config.parse(ModelSettings, {"kind": "encoder_only", "tie_output": False, **data})

    assert parse(source={"patch": 8}, head={"n_classes": 3}).source == PatchesSettings(patch=8)
    assert parse(source={"strides": [2]}, head={"n_classes": 3}).head == ClassHeadSettings(n_classes=3)
    assert parse(source={"dropout": 0.3}).source == TokensSettings(dropout=0.3)
    assert parse(source={"positions": {"max_len": 7}}).source.positions == LearnedSettings(max_len=7)
    assert config.parse(ModelSettings, {}) == EncoderDecoderSettings()


def test_none_is_spelt_out() -> None:
    data = DECODER | {"source": {"positions": "none"}, "init_std": "none"}
    settings = config.parse(ModelSettings, data)
    assert settings.source.positions is None
    assert settings.init_std is None


def test_whole_numbers_pass_for_floats_and_nothing_else_for_anything() -> None:
    assert config.parse(ModelSettings, DECODER | {"decoder": {"dropout": 0}}).decoder.dropout == 0.0


@pytest.mark.parametrize(
    ("assignment", "expected"),
    [
        ("a.b=3", {"a": {"b": 3, "c": 2}}),
        ("a.b = 3e-4", {"a": {"b": 3e-4, "c": 2}}),
        ("a.new.deep=true", {"a": {"b": 1, "c": 2, "new": {"deep": True}}}),
        ("a={b = 7}", {"a": {"b": 7}}),
        ("a.b=[1, 2]", {"a": {"b": [1, 2], "c": 2}}),
        ("a.b=two words", {"a": {"b": "two words", "c": 2}}),
        ("a.b='quoted'", {"a": {"b": "quoted", "c": 2}}),
        ("a.b=none", {"a": {"b": "none", "c": 2}}),
        ("a.b=x=y", {"a": {"b": "x=y", "c": 2}}),
        ("d=2026-01-02", {"a": {"b": 1, "c": 2}, "d": datetime.date(2026, 1, 2)}),
    ],
)
def test_an_assignment_puts_a_value_in_and_leaves_the_data_alone(assignment: str, expected: dict[str, Any]) -> None:
    data = {"a": {"b": 1, "c": 2}}
    assert config.override(data, [assignment]) == expected
    assert data == {"a": {"b": 1, "c": 2}}


def test_assignments_work_in_order_and_reach_into_nested_unions() -> None:
    changes = [
        "source.positions={kind='learned'}",
        "source.positions.max_len=64",
        "decoder.attention.rotary={}",
        "decoder.attention.rotary.base=500",
        "head.transform=gelu",
        "decoder.n_layers=1",
        "decoder.n_layers=2",
    ]
    settings = config.parse(ModelSettings, config.override(DECODER, changes))
    assert settings.source.positions == LearnedSettings(max_len=64)
    assert settings.decoder.attention.rotary == RotarySettings(base=500.0)
    assert settings.head.transform == "gelu"
    assert settings.decoder.n_layers == 2


@pytest.mark.parametrize("assignment", ["a", "", "=3", "a..b=3", ".a=3", "a.=3"])
def test_an_assignment_of_nothing_is_refused(assignment: str) -> None:
    refused(lambda: config.override({}, [assignment]), f"--set got {assignment!r}", "--set part.name=value")


def test_an_assignment_into_a_value_says_how_to_make_it_a_group() -> None:
    data = {"decoder": {"attention": {"rotary": "none"}}}
    refused(
        lambda: config.override(data, ["decoder.attention.rotary.base=500"]),
        "rotary is a value, not a group of settings",
        "--set decoder.attention.rotary={}",
    )


def test_a_setting_of_another_part_of_the_house_is_read_the_same_way() -> None:
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Inner(Settings):
        mode: Literal["fast", "slow"] = "fast"
        files: tuple[str, ...] = ()

    parsed = config.parse(Inner, {"mode": "slow", "files": [Path("a") / "b", datetime.date(2026, 1, 2)]})
    assert parsed == Inner(mode="slow", files=("a/b", "2026-01-02"))
    refused(lambda: config.parse(Inner, {"mod": "slow"}), "there is no setting mod (did you mean mode?)")
