"""Settings: what is read, which layer wins, what is refused and how it is said, what makes the run again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bertkit.errors import MissingError, SettingsError
from bertkit.settings import reading, resolve
from bertkit.settings.commands import EvalSettings, FinetuneSettings, PretrainSettings, finetune_settings, task_defaults
from bertkit.settings.compare import differences, fill, fingerprint, flat, given, to_yaml, with_values
from bertkit.settings.layers import keys
from bertkit.settings.parts import Every, every
from bertkit.settings.reading import Entry, parse, scalar
from bertkit.settings.recipes import recipes
from bertkit.settings.tools import ExplainSettings


def pretrain(*sets: str, recipe: Path | str | None = None, **flags: Any) -> PretrainSettings:
    """Settings of ``pretrain`` on a.txt; a flag ``optimizer__learning_rate=1`` is the key with a dot."""
    values = {"inputs.corpus": ["a.txt"], **{key.replace("__", "."): value for key, value in flags.items()}}
    entries = {key: Entry(value, "--" + key.rsplit(".", 1)[-1].replace("_", "-")) for key, value in values.items()}
    return resolve.resolve(
        PretrainSettings, command="pretrain", flags=entries, sets=sets, recipe=None if recipe is None else str(recipe)
    )


def file(folder: Path, text: str) -> Path:
    path = folder / "recipe.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-4", 1e-4), ("2.0e-05", 2e-5), ("5E3", 5e3), (".5", 0.5), ("3.", 3.0), ("-1", -1), ("30_522", 30522), ("0", 0),
        ("true", True), ("False", False), ("null", None), ("~", None), ("", None),
        ("no", "no"), ("on", "on"), ("10m", "10m"), ("1:30", "1:30"), ("2024-01-01", "2024-01-01"),
        ("007", 7.0), ("mlm+nsp", "mlm+nsp"),
    ],
)  # fmt: skip
def test_plain_scalars_are_yaml_1_2(text: str, value: object) -> None:
    found = scalar(text)
    assert found == value
    assert type(found) is type(value)


def test_quoted_scalars_are_texts() -> None:
    assert parse("a: '1e-4'\nb: \"true\"\nc: |\n  1\n", "x") == {"a": "1e-4", "b": "true", "c": "1\n"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: !!python/object/apply:os.system ['true']\n", "tag"),
        ("!!python/name:os.system\n", "tag"),
        ("a: !!int '3'\n", "tag"),
        ("a: 1\nb: 2\na: 3\n", "twice"),
        ("a: [1, 2\n", "not YAML"),
        ("a: \x07\n", "not YAML"),
        ("? [1, 2]\n: 3\n", "a word"),
        ("[" * 1000, "nested deeper"),
        ("x: " + "y" * reading.MAX_BYTES, "at most"),
    ],
)
def test_what_is_no_plain_yaml_is_refused(text: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        parse(text, "recipe.yaml")


def test_aliases_that_expand_to_billions_are_refused_at_once() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    with pytest.raises(SettingsError, match="more values"):
        parse("\n".join(lines), "recipe.yaml")
    with pytest.raises(SettingsError, match="more values"):
        parse("a: &a [*a]\n", "recipe.yaml")


def test_the_place_of_a_yaml_fault_is_said() -> None:
    with pytest.raises(SettingsError) as caught:
        parse("a: 1\nb: 2\na: 3\n", "recipe.yaml")
    assert caught.value.where == "recipe.yaml, line 3"
    assert "line 1" in caught.value.message


def test_flags_beat_the_recipe_which_beats_the_defaults(tmp_path: Path) -> None:
    path = file(tmp_path, "optimizer:\n  learning_rate: 2e-4\n  weight_decay: 0.1\nrun: {seed: 7}\n")
    settings = resolve.resolve(
        PretrainSettings,
        command="pretrain",
        flags={"inputs.corpus": Entry(["a.txt"], "--corpus"), "optimizer.learning_rate": Entry(3e-4, "--lr")},
        sets=["run.seed=9"],
        recipe=str(path),
        defaults={"optimizer.weight_decay": 0.5, "optimizer.beta1": 0.8},
    )
    assert settings.optimizer.learning_rate == 3e-4
    assert settings.run.seed == 9
    assert settings.optimizer.weight_decay == 0.1
    assert settings.optimizer.beta1 == 0.8
    assert settings.optimizer.beta2 == 0.999


def test_all_faults_are_said_at_once_with_file_line_and_the_nearest_name(tmp_path: Path) -> None:
    path = file(
        tmp_path,
        "optimizer:\n  learning_rat: 1e-4\n  beta1: 2\nmasking: 3\nrun:\n  log_every: 10x\nmodel:\n  size: minni\n"
        "  init_from: m\ntokenizer: {path: v, vocab_size: 100}\n",
    )
    with pytest.raises(SettingsError) as caught:
        pretrain("run.sed=1", recipe=path)
    message = str(caught.value)
    for said in (
        "'optimizer.learning_rat'. Did you mean 'optimizer.learning_rate'",
        f"({path}, line 2)",
        f"optimizer.beta1 should be less than 1, not 2. ({path}, line 3)",
        f"masking is a section: its settings stand below it, indented. ({path}, line 4)",
        f"({path}, line 6)",
        "Did you mean 'mini'?",
        "'run.sed'. Did you mean 'run.seed'? (--set run.sed)",
        "give tokenizer.path or tokenizer.vocab_size, not both",
    ):
        assert said in message
    assert "7 settings" in message


def test_a_contradiction_names_both_places() -> None:
    with pytest.raises(SettingsError) as caught:
        pretrain("schedule.warmup=500", budget__steps=100)
    assert "500" in caught.value.message
    assert "100" in caught.value.message
    assert caught.value.where == "--set schedule.warmup; --steps"


def test_a_warm_up_in_steps_needs_steps_to_be_part_of() -> None:
    with pytest.raises(SettingsError, match="no length where the clock ends the training") as caught:
        pretrain("schedule.warmup=500")
    assert caught.value.where == "--set schedule.warmup"
    pretrain("schedule.warmup=500", "budget.epochs=2")


def test_a_sections_own_contradiction_is_said_with_its_place() -> None:
    with pytest.raises(SettingsError) as caught:
        pretrain("masking.mask_share=0.8", "masking.random_share=0.5")
    assert "together above 1" in caught.value.message
    assert "--set masking." in str(caught.value.where)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("run.seed", "section.name=value"),
        ("lr=3", "optimizer.learning_rate"),
        ("learning_rate=3", "optimizer.learning_rate"),
        ("run.seed=true", "run.seed"),
        ("run.seed=1.5", "run.seed"),
        ("optimizer.learning_rate=.nan", "optimizer.learning_rate"),
        ("optimizer.learning_rate='1'", "optimizer.learning_rate"),
        ("run.report_to=[a", "not YAML"),
        ("run.eval_every=0", "number of steps"),
        ("run.eval_every=true", "run.eval_every"),
    ],
)
def test_wrong_set_texts(text: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        pretrain(text)


def test_set_takes_lists_intervals_and_null() -> None:
    settings = pretrain("run.report_to=[tensorboard, wandb]", "run.eval_every=10m", "run.save_every=500", "tokenizer.path=null")
    assert settings.run.report_to == ("tensorboard", "wandb")
    assert (settings.run.eval_every, settings.run.save_every, settings.tokenizer.path) == ("10m", 500, None)


def test_a_flag_and_a_set_that_disagree_are_refused() -> None:
    with pytest.raises(SettingsError, match="given twice"):
        pretrain("run.seed=1", run__seed=2)
    assert pretrain("run.seed=2", run__seed=2).run.seed == 2


def test_what_is_needed_and_missing_is_named() -> None:
    with pytest.raises(SettingsError, match=r"^--corpus is needed\. \(inputs\.corpus\)"):
        resolve.resolve(PretrainSettings, command="pretrain")


def test_what_is_needed_and_wrong_is_told_once() -> None:
    with pytest.raises(SettingsError) as refused:
        resolve.resolve(ExplainSettings, command="explain", flags={"texts": Entry(["a", "b", "c"], "A [B]")})
    assert str(refused.value).startswith("texts takes 2 at most, not 3. (A [B])")


def test_a_path_that_is_no_utf8_is_named() -> None:
    with pytest.raises(SettingsError, match=r"^output holds bytes that are not UTF-8\. \(--set output\)"):
        pretrain("output=runs/\udc80")


def test_recipes_of_other_commands_and_missing_ones(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="bertkit finetune"):
        pretrain(recipe=file(tmp_path, "command: finetune\ntask: sst2\n"))
    with pytest.raises(MissingError, match="no recipe file"):
        pretrain(recipe="nothing/here.yaml")
    with pytest.raises(MissingError, match="Did you mean 'pretrain-mini-cpu'"):
        pretrain(recipe="pretrain-mini-cp")
    with pytest.raises(SettingsError, match="a mapping"):
        pretrain(recipe=file(tmp_path, "- 1\n"))
    (tmp_path / "latin.yaml").write_bytes(b"command: \xe9\n")
    with pytest.raises(SettingsError, match="UTF-8"):
        pretrain(recipe=tmp_path / "latin.yaml")


def test_a_renamed_key_keeps_its_old_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(resolve.ALIASES, "optim.rate", "optimizer.learning_rate")
    assert pretrain(recipe=file(tmp_path, "optim: {rate: 5e-4}\n")).optimizer.learning_rate == 5e-4
    assert pretrain("optim.rate=6e-4").optimizer.learning_rate == 6e-4


def test_the_resolved_file_makes_the_same_settings_again(tmp_path: Path) -> None:
    settings = pretrain("optimizer.epsilon=1e-7", "masking.probability=0.2", "run.eval_every=10m", output="out", overwrite=True)
    text = to_yaml(settings, command="pretrain")
    assert "output" not in text
    assert "overwrite" not in text
    again = resolve.resolve(PretrainSettings, command="pretrain", recipe=str(file(tmp_path, text)))
    assert flat(again) == flat(settings)
    assert fingerprint(again) == fingerprint(settings)
    assert differences(given(settings), again, resolved=flat(settings)) == []


def test_texts_that_look_like_numbers_survive_the_file(tmp_path: Path) -> None:
    settings = pretrain(
        "tokenizer.path='123'", "model.init_from='1e5'", "inputs.validation=['~', 'true', 'no', 'a: b', 'é#', '']"
    )
    again = resolve.resolve(
        PretrainSettings, command="pretrain", recipe=str(file(tmp_path, to_yaml(settings, command="pretrain")))
    )
    assert (again.tokenizer.path, again.model.init_from) == ("123", "1e5")
    assert again.inputs.validation == ("~", "true", "no", "a: b", "é#", "")


def test_differences_name_what_changed_and_spare_what_may_change() -> None:
    before = pretrain("run.seed=1", "run.log_every=5")
    assert differences(given(before), pretrain("run.seed=1", "run.log_every=50", "run.workers=3", "run.save_every=1m")) == []
    found = differences(given(before), pretrain("optimizer.learning_rate=1"))
    assert [(each.key, each.before, each.now) for each in found] == [("optimizer.learning_rate", 1e-4, 1.0), ("run.seed", 1, 42)]


def test_an_automatic_value_may_be_given_as_what_it_became() -> None:
    before = pretrain()
    resolved = flat(with_values(before, {"optimizer.learning_rate": 3e-4}))
    assert differences(given(before), pretrain(), resolved=resolved) == []
    assert differences(given(before), pretrain("optimizer.learning_rate=3e-4"), resolved=resolved) == []
    # What is the written default is not what it became.
    assert [d.key for d in differences(given(before), pretrain("optimizer.learning_rate=1e-4"), resolved=resolved)] == [
        "optimizer.learning_rate"
    ]


def test_with_values_checks_and_fill_gives_way() -> None:
    settings = pretrain("optimizer.learning_rate=1e-3", output="out")
    assert with_values(settings, {"optimizer.learning_rate": 2e-3}).optimizer.learning_rate == 2e-3
    assert with_values(settings, {"run.seed": 5}).output == "out"
    filled = fill(settings, {"optimizer.learning_rate": 2e-3, "run.seed": 5})
    assert (filled.optimizer.learning_rate, filled.run.seed, filled.output) == (1e-3, 5, "out")
    assert "optimizer.beta1" not in given(filled)
    with pytest.raises(ValueError, match="greater than 0"):
        with_values(settings, {"optimizer.learning_rate": -1})


def test_the_settings_of_a_task_are_those_of_its_kind() -> None:
    span, classes = finetune_settings("squad"), finetune_settings("sst2")
    assert "kind.max_question_length" in keys(span)
    assert "kind.max_question_length" not in keys(classes)
    assert finetune_settings("squad") is span
    with pytest.raises(SettingsError, match=r"^kind\.stride is the overlap of windows, and there are none.*\(--stride\)$"):
        resolve.resolve(classes, command="finetune", flags={"task": Entry("sst2", "TASK"), "kind.stride": Entry(1, "--stride")})
    settings = resolve.resolve(
        span, command="finetune", flags={"task": Entry("squad", "TASK")}, defaults=task_defaults("squad"), defaults_of="squad"
    )
    assert isinstance(settings, FinetuneSettings)
    assert settings.batch.size == 32
    assert settings.run.keep_best is True


def test_data_is_a_folder_or_files() -> None:
    with pytest.raises(SettingsError, match="not both"):
        resolve.resolve(EvalSettings, command="eval", sets=["task=sst2", "data.folder=x", "data.validation_file=y"])


def test_every_setting_says_what_it_is() -> None:
    for model in (PretrainSettings, finetune_settings("squad"), finetune_settings("conll2003"), EvalSettings):
        silent = [key for key, field in keys(model).items() if not field.description]
        assert silent == []


@pytest.mark.parametrize("recipe", recipes(), ids=lambda recipe: recipe.name)
def test_every_preset_loads_and_opens_with_its_purpose(recipe: Any) -> None:
    text = recipe.path.read_text(encoding="utf-8")
    opening = [line for line in text.splitlines() if line.startswith("#")]
    assert recipe.purpose
    for word in ("Command:", "Hardware:", "Time:", "Score:"):
        assert any(word in line for line in opening), f"{recipe.name} does not say its {word}"
    command = resolve.recipe_value(recipe.name, "command")
    if command == "pretrain":
        settings: Any = pretrain(recipe=recipe.name)
    else:
        assert command == "finetune"
        task = resolve.recipe_value(recipe.name, "task") or "sst2"
        model = finetune_settings(task)
        settings = resolve.resolve(model, command="finetune", flags={"task": Entry(task, "TASK")}, recipe=recipe.name)
    assert len(given(settings)) > 2


def test_intervals() -> None:
    assert every(500) == Every(steps=500)
    assert every("10m") == Every(seconds=600.0)
    assert every("1.5h") == Every(seconds=5400.0)
    for wrong in (0, -1, "10", "m", "10 m", "10d", "0m", "0.0s"):
        with pytest.raises(ValueError, match="number of steps"):
            every(wrong)
