"""The papers' own figures of evaluation, in the words of `evaluations`: model, then metric and mode to value."""

from collections.abc import Mapping

from pipelines.evaluate.ranking import Standing, contradictions

Figures = Mapping[tuple[str, str], float]

_AUTOMATIC = (
    ("bleu_1", "zh"),
    ("distinct_1", "answer"),
    ("rouge_l", "paper"),
    ("meteor_exact", "zh"),
    ("n_avg", "paper"),
)
_RANKED = (("win1", ""), ("win2", ""), ("mean_rank", ""))


def _rows(names: tuple[tuple[str, str], ...], table: Mapping[str, tuple[float, ...]]) -> dict[str, Figures]:
    return {model: dict(zip(names, figures, strict=True)) for model, figures in table.items()}


# E Table 2. Which METEOR and which Distinct-1 E means it does not say: ours are set beside it as the nearest.
E_AUTOMATIC = _rows(_AUTOMATIC, {
    "E, Empathy-QA: Empathy-R1": (0.314, 0.375, 0.045, 0.314, 0.262),
    "E, Empathy-QA: Qwen3-8B-NT": (0.253, 0.318, 0.117, 0.298, 0.246),
    "E, Empathy-QA: Qwen3-8B-T": (0.250, 0.315, 0.111, 0.299, 0.244),
    "E, Empathy-QA: CBT-LLM": (0.251, 0.449, 0.013, 0.270, 0.246),
    "E, Empathy-QA: EmoLLM": (0.004, 0.785, 0.003, 0.118, 0.228),
    "E, Empathy-QA: Deepseek-R1": (0.232, 0.457, 0.126, 0.249, 0.266),
    "E, PsyQA: Empathy-R1": (0.261, 0.389, 0.046, 0.275, 0.243),
    "E, PsyQA: Qwen3-8B-NT": (0.161, 0.307, 0.084, 0.250, 0.201),
    "E, PsyQA: Qwen3-8B-T": (0.161, 0.307, 0.084, 0.249, 0.200),
    "E, PsyQA: CBT-LLM": (0.257, 0.451, 0.009, 0.241, 0.240),
    "E, PsyQA: EmoLLM": (0.022, 0.781, 0.003, 0.140, 0.237),
    "E, PsyQA: Deepseek-R1": (0.124, 0.383, 0.077, 0.193, 0.194),
})  # fmt: skip


def _ranked(
    table: str, figures: Mapping[str, tuple[float, float, float]], units: tuple[float, float]
) -> dict[str, Figures]:
    """The lines of a table of ranks, marked where no rankings give it; `units`: the last digits of its shares and of
    its mean ranks.
    """
    standings = [Standing(model, *line) for model, line in figures.items()]
    mark = " (impossible)" if contradictions(standings, share_unit=units[0], rank_unit=units[1]) else ""
    return _rows(_RANKED, {f"{table}{mark}: {model}": line for model, line in figures.items()})


# E Table 2 and M Table 3, as the check of tables of ranks has them.
RANKED = {
    **_ranked("E, Empathy-QA", {
        "Empathy-R1": (0.443, 0.563, 2.600),
        "Qwen3-8B-NT": (0.163, 0.394, 3.114),
        "Qwen3-8B-T": (0.114, 0.340, 3.257),
        "CBT-LLM": (0.109, 0.306, 3.411),
        "EmoLLM": (0.026, 0.072, 5.457),
        "Deepseek-R1": (0.146, 0.326, 3.160),
    }, (1e-3, 1e-3)),
    **_ranked("E, PsyQA", {
        "Empathy-R1": (0.375, 0.556, 2.616),
        "Qwen3-8B-NT": (0.103, 0.376, 3.333),
        "Qwen3-8B-T": (0.095, 0.250, 3.296),
        "CBT-LLM": (0.123, 0.292, 3.298),
        "EmoLLM": (0.023, 0.032, 5.614),
        "Deepseek-R1": (0.280, 0.494, 2.837),
    }, (1e-3, 1e-3)),
    **_ranked("M", {
        "Qwen3-8B-nothink": (0.0857, 0.5571, 2.36),
        "Qwen3-8B-think": (0.2029, 0.5372, 2.26),
        "MindChat": (0.7114, 0.8060, 1.38),
    }, (1e-4, 1e-2)),
}  # fmt: skip
