"""Every step on its example: the figures of the teaching literature come out, and every question knows its answer."""

import math

import pytest

from glassformer.learn.figures import Bars, Lines, Matrix, Pieces, Points, to_data
from glassformer.learn.find import find_step, list_steps
from glassformer.learn.sentences import Unfit, parse
from glassformer.learn.steps import STEPS, training
from glassformer.learn.steps.stacks import make_encoder_stack
from tests.learn.lesson import bars, matrix, row, shown

NAMES = [step.name for step in STEPS]


def test_there_is_a_step_for_every_idea() -> None:
    assert len(NAMES) == 26
    assert list_steps(STEPS).count("\n") == 25


@pytest.mark.parametrize("name", NAMES)
def test_a_step_is_short_has_figures_and_a_question_that_it_can_judge(name: str) -> None:
    step, made = find_step(name), shown(name)
    assert 2 <= step.text.count(". ") + step.text.count("? ") + step.text.count("! ") + 1 <= 6
    assert made.figures
    assert made.note == ""
    question = made.question
    assert question.accepts(question.answer)
    for wrong in ("", "surely not this", "-987654", "no idea"):
        assert not question.accepts(wrong)
    assert question.hint
    assert question.choices is None or sum(question.accepts(choice) for choice in question.choices) == 1


@pytest.mark.parametrize("name", NAMES)
def test_figures_are_whole(name: str) -> None:
    for figure in shown(name).figures:
        assert figure.caption.endswith((".", "…", ".)"))
        assert to_data(figure)["kind"] == figure.kind
        match figure:
            case Matrix():
                assert len(figure.values) == len(figure.rows) > 0
                assert all(len(values) == len(figure.columns) > 0 for values in figure.values)
                assert all(v is None or math.isfinite(v) for values in figure.values for v in values)
            case Bars():
                assert len(figure.labels) == len(figure.values) > 0
                assert all(0 <= v < math.inf for v in figure.values)
            case Lines():
                assert len({len(series) for series in figure.values}) == 1
                assert len(figure.labels) == len(figure.values)
            case Pieces():
                assert len(figure.rows) == len(figure.tokens)
                assert all(figure.tokens)
            case Points():
                assert len(figure.labels) == len(figure.x) == len(figure.y) > 0


def test_find_my_files_is_2_3_1() -> None:
    figure = matrix("one-hot")
    assert figure.columns == ["files", "find", "my"]
    assert figure.values == [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
    assert "[2, 3, 1]" in figure.caption


def test_a_one_hot_times_itself_is_1_times_another_0_and_times_a_mix_the_weight() -> None:
    products, mix = matrix("dot-product"), matrix("dot-product", 1)
    n = len(products.rows)
    assert products.values == [[float(i == j) for j in range(n)] for i in range(n)]
    assert list(bars("dot-product", 2).values()) == mix.values[0]
    assert sum(v or 0 for v in mix.values[0]) == pytest.approx(1)


def test_ones_in_the_columns_1_4_3_pull_out_the_rows_1_4_3() -> None:
    stack, table, out = (matrix("lookup", i) for i in range(3))
    assert [values.index(1) + 1 for values in stack.values] == [1, 4, 3]
    assert out.values == [table.values[i] for i in (0, 3, 2)]
    assert out.rows == ["row 1", "row 4", "row 3"]


def test_first_order() -> None:
    table = matrix("first-order")
    assert row(table, "my") == pytest.approx(
        {"directories": 0.2, "files": 0.3, "photos": 0.5, "me": 0, "my": 0, "please": 0, "show": 0}
    )
    assert set(row(table, "please").values()) == {0}
    for word in ("directories", "files", "me", "photos", "show"):
        assert sorted(v or 0 for v in row(table, word).values()) == [0] * 6 + [1]
    assert bars("first-order", 1) == pytest.approx({"photos": 0.5, "files": 0.3, "directories": 0.2})


def test_second_order_doubts_once_where_first_order_doubts_twice() -> None:
    one, two = matrix("second-order"), matrix("second-order", 1)
    assert one.rows == ["ran", "the"]
    assert row(one, "ran") == pytest.approx({"down": 0.4, "please": 0.6, "battery": 0, "program": 0})
    assert row(one, "the") == pytest.approx({"battery": 0.4, "program": 0.6, "down": 0, "please": 0})
    assert row(two, "battery ran")["down"] == 1
    assert row(two, "program ran")["please"] == 1
    fractions = {label for label in two.rows if any(0 < (v or 0) < 1 for v in row(two, label).values())}
    assert fractions == {"whether the"}
    assert row(two, "whether the")["battery"] == pytest.approx(0.4)
    assert shown("second-order").question.answers == [8 * 8]


def test_votes_of_skips() -> None:
    program, battery = matrix("skips"), matrix("skips", 1)
    assert row(program, "program … ran") == {"mask": 1, "down": 0, "please": 1}
    assert row(battery, "battery … ran") == {"mask": 1, "down": 1, "please": 0}
    halves = [values for values in program.values if values[1:] == [0.5, 0.5]]
    assert len(halves) == 8
    assert row(program, "all votes") == {"mask": 9, "down": 4, "please": 5}
    assert row(battery, "all votes") == {"mask": 9, "down": 5, "please": 4}


def test_a_mask_makes_votes_sure() -> None:
    program, battery = matrix("masking"), matrix("masking", 1)
    assert row(program, "all votes") == {"mask": 1, "down": 0, "please": 1}
    assert row(battery, "all votes") == {"mask": 1, "down": 1, "please": 0}
    assert [label for label in program.rows[:-1] if row(program, label)["mask"]] == ["program … ran"]


def test_the_mask_is_looked_up_by_a_query() -> None:
    masks, found = matrix("attention"), matrix("attention", 1)
    assert len(masks.rows) == 13
    assert row(found, "mask QKᵀ") == row(masks, "ran")
    assert {word for word, v in row(found, "mask QKᵀ").items() if v} == {"battery", "program"}
    assert {word for word, v in row(found, "attended").items() if v} == {"program"}


def test_pairs_by_hand_made_weights() -> None:
    given, weights, sums, fired, votes, said = (matrix("pairs", i) for i in range(6))
    assert given.columns == ["battery …", "program …", "… ran", "bias"]
    assert given.values[1][:2] == [1, 0]
    assert row(sums, "sentence 2")["battery … ran"] == 1
    assert row(sums, "sentence 2")["program … ran"] == -1
    assert row(sums, "sentence 1") == {"battery … ran": -1, "program … ran": 1, "ran": 0}
    assert fired.values == [[max(0, v or 0) for v in values] for values in sums.values]
    product = [
        [
            sum((x or 0) * (w or 0) for x, w in zip(values, column, strict=True))
            for column in zip(*weights.values, strict=True)
        ]
        for values in given.values
    ]
    assert product == sums.values
    assert row(said, "sentence 1") == {"down": 0, "please": 1}
    assert row(said, "sentence 2") == {"down": 1, "please": 0}
    assert row(votes, "ran") == {"down": 0.5, "please": 0.5}


def test_completion_appends_the_best_word_again_and_again() -> None:
    steps = shown("completion").figures[0]
    assert isinstance(steps, Pieces)
    assert steps.tokens[-1] == ["check", "whether", "the", "program", "ran", "please"]
    assert all(later[:-1] == earlier for earlier, later in zip(steps.tokens, steps.tokens[1:], strict=False))
    heat = matrix("completion", 2)
    best = [values[heat.columns.index("program")] for values in heat.values]
    assert best[1] == pytest.approx(0.6)
    assert (best[0] or 0) > (best[1] or 0) > (best[2] or 0) > 0.5


def test_why_embeddings() -> None:
    table = matrix("embeddings")
    assert row(table, "pairs of 50,000 words")["rows"] == 2_500_000_000
    assert (row(table, "pairs of 50,000 words")["numbers"] or 0) > 100e12
    assert row(table, "50,000 embeddings")["numbers"] == 25_600_000
    points = shown("embeddings").figures[1]
    assert isinstance(points, Points)
    assert {"cat, dog", "buy, sell", "apples, pears"} <= set(points.labels)


def test_positions_of_an_odd_width() -> None:
    columns = zip(*matrix("positions").values, strict=True)
    wanted = [
        [0, 0.841, 0.909, 0.141, -0.757],
        [1, 0.540, -0.416, -0.990, -0.654],
        [0, 0.025, 0.050, 0.075, 0.100],
        [1, 1.000, 0.999, 0.997, 0.995],
        [0, 0.001, 0.001, 0.002, 0.003],
    ]
    for found, numbers in zip(columns, wanted, strict=True):
        assert list(found) == pytest.approx(numbers, abs=6e-4)


def test_softmax_gives_probabilities_in_the_order_of_the_scores() -> None:
    figure = matrix("de-embedding", 1)
    scores, shares = ([v or 0 for v in values] for values in figure.values)
    assert sum(shares) == pytest.approx(1)
    exponentials = [math.exp(v) for v in scores]
    assert shares == pytest.approx([v / sum(exponentials) for v in exponentials])
    assert shown("de-embedding").question.answers == ["down"]


def test_heads_look_for_different_things() -> None:
    first, second = matrix("many-heads"), matrix("many-heads", 1)
    assert first.values[0][3] == pytest.approx(first.values[0][0])  # both are “the”
    assert (second.values[0][3] or 0) < 0.01
    for figure in (first, second):
        assert [sum(v or 0 for v in values) for values in figure.values] == pytest.approx([1] * 6)


def test_one_head_is_the_formula() -> None:
    x, scores, weights, z = (matrix("one-head", i) for i in range(4))
    n, d = len(x.rows), len(x.columns)
    for i in range(n):
        for j in range(n):
            dot = sum(6 * (x.values[i][k] or 0) * (x.values[j][k] or 0) for k in range(d)) / math.sqrt(d)
            assert scores.values[i][j] == (pytest.approx(dot) if j <= i else None)
    mixed = [
        [sum((weights.values[i][j] or 0) * (x.values[j][k] or 0) for j in range(n)) for k in range(d)] for i in range(n)
    ]
    for found, wanted in zip(z.values, mixed, strict=True):
        assert found == pytest.approx(wanted)


def test_with_all_weights_at_zero_the_input_still_comes_through() -> None:
    before, silent, after = (matrix("skip-connections", i) for i in range(3))
    assert after.values == before.values
    assert all(v == 0 for values in silent.values for v in values)


def test_layer_norm_of_2_4_6_8() -> None:
    figure = matrix("layer-norm")
    assert figure.values[0] == [2, 4, 6, 8]
    assert figure.values[1] == pytest.approx([-1.3416, -0.4472, 0.4472, 1.3416], abs=1e-4)
    assert figure.caption.startswith("Mean 5 and variance 5 ")
    assert matrix("layer-norm", 1).values[1] == pytest.approx(figure.values[1], abs=1e-4)


def test_the_guess_grows_from_layer_to_layer() -> None:
    said = matrix("many-layers")
    column = [values[said.columns.index("please")] or 0 for values in said.values]
    assert column[0] < 0.1
    assert column[-1] > 0.9


def test_the_look_ahead_mask_is_seven_by_seven() -> None:
    scores, weights = matrix("decoder-stack", 1), matrix("decoder-stack", 2)
    assert scores.rows[1] == "2 Ich"
    for i in range(7):
        assert [v is None for v in scores.values[i]] == [j > i for j in range(7)]
        assert weights.values[i][i + 1 :] == [0] * (6 - i)
        assert sum(v or 0 for v in weights.values[i]) == pytest.approx(1)
    assert shown("decoder-stack").question.answers == [21]


def test_an_encoder_sees_what_comes_later() -> None:
    moved = bars("encoder-stack", 2)
    assert moved["1 The"] > 0.001
    assert max(moved, key=moved.__getitem__) == "11 wide"
    wide, tired = matrix("encoder-stack"), matrix("encoder-stack", 1)
    assert wide.caption.startswith("Where “it” looks")
    assert wide.values != tired.values


def test_each_german_word_looks_at_its_english_one() -> None:
    figure = matrix("cross-attention")
    assert "Ich habe einen Apfel gegessen." in figure.caption
    looks = {label: max(row(figure, label).items(), key=lambda item: item[1] or 0)[0] for label in figure.rows}
    assert looks["1 Ich"] == "1 I"
    assert looks["4 Apfel"] == "4 apple"
    assert looks["5 gegessen"] == "2 ate"


def test_letters_with_marks_take_two_bytes() -> None:
    pieces = shown("tokenizing").figures[0]
    assert isinstance(pieces, Pieces)
    words, letters, data = pieces.tokens
    assert "".join(letters).replace("␣", " ") == " ".join(words)
    assert bytes.fromhex("".join(data)).decode() == " ".join(words)
    assert len(data) == len(letters) + 2


def test_merges_join_the_commonest_pair() -> None:
    assert list(bars("bpe").items())[:2] == [("i + n → in", 8), ("in + g → ing", 8)]
    pieces = shown("bpe").figures[1]
    assert isinstance(pieces, Pieces)
    assert {"".join(tokens) for tokens in pieces.tokens} == {"sing␣singing␣sings"}
    assert len(pieces.tokens[0]) > len(pieces.tokens[1]) > len(pieces.tokens[2])


def test_a_higher_tone_sounds_in_a_higher_band() -> None:
    loud = matrix("audio")
    loudest = [max(range(8), key=lambda i: loud.values[i][j] or 0) for j in range(4)]
    assert loudest == sorted(loudest, reverse=True)  # rows go down from the highest band
    assert len(set(loudest)) > 2


def test_a_picture_is_cut_into_patches() -> None:
    picture, patches, weights = (matrix("pictures", i) for i in range(3))
    lines = [int("".join(str(int(v or 0)) for v in values), 2) for values in picture.values]
    assert bytes(lines) == b"pictures"
    assert patches.values[1] == [v for values in picture.values[:4] for v in values[4:]]
    assert [sum(v or 0 for v in values) for values in weights.values] == pytest.approx([1] * 4)


def test_pre_training_saves_steps() -> None:
    needed = bars("fine-tuning", 2)
    assert needed["pre-trained"] < needed["from nothing"]


def test_where_pre_training_costs_steps_the_hint_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    curves = iter([[], [1.0, 0.4], [1.0, 1.0, 1.0, 0.4]])  # before, from nothing, pre-trained
    monkeypatch.setattr(training, "losses_of", lambda *_: next(curves))
    question = training.make_fine_tuning(parse(["a b c", "c b a"])).question
    assert question.accepts("-2")
    assert "take the longer bar from the shorter one" in question.hint


def test_another_last_word_is_another_word() -> None:
    with pytest.raises(Unfit, match="2 different words"):
        make_encoder_stack(parse(["ab ab ab"]))
    for lines in (["ab ab ab", "cd ab"], ["ab cd ab"]):
        made = make_encoder_stack(parse(lines))
        _, changed, moved = made.figures
        assert isinstance(changed, Matrix)
        assert "“cd”" in changed.caption
        assert isinstance(moved, Bars)
        assert moved.values[-1] > 0.01
        assert made.question.answer == "yes"


OWN = [
    ["one"],
    ["a"],
    ["the cat sat on the mat", "the dog sat on the log *4"],
    ["x y", "y x"],
    ["a a a a a a a a"],
    ["日本 語 です", "日本 人 です"],
    ["a\x1b[31mred\x07 b\x00\x9f c", "a\x1b b"],
    ["<script>alert(1)</script> & [bold]x[/bold]", "… … …"],
    [" ".join(f"w{i}x{j}" for j in range(16)) for i in range(12)],
]


@pytest.mark.parametrize("lines", OWN, ids=lambda lines: lines[0][:12])
def test_every_step_runs_on_any_text_or_says_why_not(lines: list[str]) -> None:
    sentences = parse(lines)
    notes = []
    for step in STEPS:
        if not step.live and lines[0] != "日本 語 です":
            continue  # trained on each text: one must do
        made = step.show(sentences)
        assert made.question.accepts(made.question.answer)
        assert made.note == "" or made.note.endswith(" So here is the example.")
        assert made.note == "" or made.note.count(".") == 2
        notes += [step.name] if made.note else []
    assert ("second-order" in notes) == (max(len(line.split()) for line in lines) < 3)
