"""The automatic figures on people's answers: equal to their packages, and of the size that E prints."""

import json
from pathlib import Path

import pytest
from reference_metrics import by_their_packages

from pipelines.evaluate.metrics import Answer, Question, baselines, score_answer, score_answers


@pytest.fixture(scope="module")
def questions(shared: Path) -> list[Question]:
    rows = json.loads((shared / "zh_qa" / "PsyQA_example.json").read_text(encoding="utf-8"))
    return [
        Question(str(number), f"{one['question']}\n{one['description']}", [a["answer_text"] for a in one["answers"]])
        for number, one in enumerate(rows)
    ]


@pytest.fixture(scope="module")
def siblings(questions: list[Question]) -> list[Answer]:
    """Each answer against all others to its question."""
    return [
        Answer(one.question_id, text, [*one.answers[:place], *one.answers[place + 1 :]])
        for one in questions
        for place, text in enumerate(one.answers)
    ]


def test_an_answer_beside_a_sibling_scores_as_in_the_packages(siblings: list[Answer]):
    """Every fifth pair, each once: of two answers ROUGE-L is the same either way."""
    pairs = [(one.text, other) for one in siblings for other in one.references if one.text < other][::5]
    assert len(siblings) == 268
    assert len(pairs) > 100
    for answer, reference in pairs:
        theirs = by_their_packages(answer, reference)
        ours = score_answer(answer, [reference])
        assert {figure: ours[figure] for figure in theirs} == pytest.approx(theirs, abs=1e-9)


def test_people_among_themselves_are_of_the_size_that_e_prints_and_far_above_the_baselines(questions, siblings):
    def values(answers: list[Answer]) -> dict[tuple[str, str], float]:
        return {(row[0], row[1]): row[3] for row in score_answers(answers, draws=100).iter_rows()}

    people = values(siblings)
    assert people == pytest.approx(
        {
            ("bleu_1", "zh"): 0.327,
            ("rouge_l", "paper"): 0.032,  # E: .046 on PsyQA
            ("rouge_l", "character"): 0.167,
            ("meteor_exact", "zh"): 0.267,  # E: .275
            ("distinct_1", "answer"): 0.393,  # E: .389
            ("n_avg", "paper"): 0.253,  # E: .243
            ("n_avg", "character"): 0.287,
            ("distinct_1", "corpus"): 0.014,
        },
        abs=0.0006,
    )
    by_name = {name: values(answers) for name, answers in baselines(questions).items()}
    for name in ("post_copied", "generic_comfort"):
        for metric in (("bleu_1", "zh"), ("meteor_exact", "zh"), ("rouge_l", "character")):
            assert by_name[name][metric] < by_name["sibling"][metric], (name, metric)
        assert by_name[name]["distinct_1", "answer"] > by_name["sibling"]["distinct_1", "answer"], "a figure of brevity"
