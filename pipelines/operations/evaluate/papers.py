"""The papers' own figures of evaluation, as `evaluations` has them: of each model metric, mode, subset to value."""

from collections.abc import Mapping, Sequence

from pipelines.evaluate.ranking import Standing, contradictions

Figure = tuple[str, str, str]  # metric, mode, subset
Figures = Mapping[Figure, float]

_AUTOMATIC = (
    ("bleu_1", "zh", "all"),
    ("distinct_1", "answer", "all"),
    ("rouge_l", "paper", "all"),
    ("meteor_exact", "zh", "all"),
    ("n_avg", "paper", "all"),
)
_RANKED = (("win1", "", "all"), ("win2", "", "all"), ("mean_rank", "", "all"))


def _rows(names: Sequence[Figure], table: Mapping[str, Sequence[float]], most: float = 1.0) -> dict[str, Figures]:
    """The lines of a table of the papers; `most`: what they print for 1."""
    return {
        model: {name: figure / most for name, figure in zip(names, line, strict=True)} for model, line in table.items()
    }


# E Table 2, and what Tables 3 and 4 add to it. Which METEOR and which Distinct-1 E means it does not say: ours are set
# beside it as the nearest.
E_AUTOMATIC = _rows(_AUTOMATIC, {
    "E, Empathy-QA: Empathy-R1": (0.314, 0.375, 0.045, 0.314, 0.262),
    "E, Empathy-QA: Qwen3-8B-NT": (0.253, 0.318, 0.117, 0.298, 0.246),
    "E, Empathy-QA: Qwen3-8B-T": (0.250, 0.315, 0.111, 0.299, 0.244),
    "E, Empathy-QA: CBT-LLM": (0.251, 0.449, 0.013, 0.270, 0.246),
    "E, Empathy-QA: EmoLLM": (0.004, 0.785, 0.003, 0.118, 0.228),
    "E, Empathy-QA: Deepseek-R1": (0.232, 0.457, 0.126, 0.249, 0.266),
    "E, Empathy-QA: SFT only": (0.249, 0.307, 0.092, 0.278, 0.232),
    "E, Empathy-QA: GRPO only": (0.292, 0.354, 0.066, 0.309, 0.255),
    "E, Empathy-QA: without CoE": (0.296, 0.345, 0.054, 0.309, 0.251),
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

# M Table 2. Its variance is so small that it can only be that of the mean over all responses, from draw to draw.
M_JUDGED = _rows([
    *((metric, "", "all") for metric in ("fluency_comfort", "empathic_understanding", "support_encouragement")),
    *(("overall", "", "all"), ("variance", "between draws", "all")),
], {
    "M: Qwen3-8B-nothink, by Qwen-Plus": (1.935, 3.366, 3.199, 2.834, 0.00026),
    "M: Qwen3-8B-think, by Qwen-Plus": (1.764, 3.030, 2.842, 2.547, 0.00022),
    "M: MindChat, by Qwen-Plus": (3.516, 4.037, 4.032, 3.863, 0.00005),
    "M: Qwen3-8B-nothink, by GPT-4o": (2.433, 2.537, 2.426, 2.465, 0.00005),
    "M: Qwen3-8B-think, by GPT-4o": (2.414, 2.401, 2.263, 2.359, 0.00002),
    "M: MindChat, by GPT-4o": (3.468, 3.650, 3.644, 3.588, 0.00002),
})  # fmt: skip


def _of_labels(mode: str) -> list[Figure]:
    """The columns of C Table 1."""
    steps = [(metric, mode, f"step{n}") for n in (1, 2, 3) for metric in ("weighted_f1", "recall_false")]
    return [*steps, ("weighted_f1", mode, "response"), ("accuracy", mode, "response")]


# C Table 1. All but PRM and ORM are asked with one prompt, as UnifiReward is.
C_REWARD_MODELS = {
    **_rows(_of_labels("unified"), {
        "C: GPT-4o": (46.63, 6.48, 75.53, 4.26, 73.42, 10.91, 47.94, 51.92),
        "C: InternVL3": (49.87, 2.52, 54.65, 4.00, 53.79, 2.31, 46.32, 51.01),
        "C: Qwen2.5-VL": (43.23, 2.29, 74.18, 2.21, 71.79, 2.01, 42.19, 47.91),
        "C: Keye-VL": (48.42, 8.40, 73.16, 18.00, 74.30, 12.50, 47.32, 51.66),
        "C: MiMo-VL": (47.78, 7.20, 75.11, 9.06, 71.64, 6.14, 48.15, 53.66),
        "C: UnifiReward": (75.34, 58.82, 81.70, 25.00, 79.53, 32.15, 56.88, 59.93),
        "C: UnifiReward-D": (74.75, 59.25, 81.68, 31.00, 81.35, 41.97, 54.57, 53.49),
        "C: UnifiReward-R": (71.06, 43.70, 75.93, 3.01, 71.94, 1.79, 56.09, 58.89),
        "C: UnifiReward-P": (77.12, 67.23, 82.18, 36.04, 81.79, 44.65, 57.03, 61.15),
    }, 100),
    **_rows(_of_labels("apart"), {
        "C: PRM and ORM": (75.26, 58.46, 78.58, 10.00, 78.77, 29.47, 56.31, 58.71),
    }, 100),
}  # fmt: skip

_ESC = ("fluency", "expression", "empathy", "information", "skillful", "humanoid", "overall")
# C Table 2, which prints hundredths of the four points. "reasoning": with C's prompt and form.
C_ESC_EVAL = _rows([(metric, "five rounds", "all") for metric in _ESC], {
    "C: InternLM3": (88.11, 75.70, 84.11, 89.34, 85.46, 40.42, 72.45),
    "C: Qwen3": (84.83, 75.22, 86.27, 86.92, 82.83, 43.86, 71.54),
    "C: Qwen2.5-VL": (85.46, 70.46, 85.23, 87.22, 85.83, 37.37, 69.96),
    "C: InternLM3, reasoning": (83.70, 63.69, 81.93, 63.74, 63.07, 79.06, 70.31),
    "C: Qwen3, reasoning": (83.50, 63.54, 81.93, 63.75, 75.47, 69.79, 70.32),
    "C: Qwen2.5-VL, reasoning": (57.02, 30.24, 51.23, 44.44, 41.62, 41.78, 31.25),
    "C: CPsyCounX": (85.42, 71.50, 85.61, 82.47, 78.94, 47.85, 70.49),
    "C: SoulChat 2.0": (86.36, 70.34, 85.69, 69.41, 68.66, 87.50, 62.65),
    "C: EmoLLM 3.0": (85.03, 68.71, 83.83, 75.70, 70.56, 87.42, 64.77),
    "C: COMPEER-SFT": (83.18, 76.04, 75.46, 71.37, 83.25, 81.32, 70.98),
    "C: COMPEER-POR": (84.27, 63.06, 81.49, 74.60, 84.71, 82.81, 72.93),
    "C: COMPEER-UR": (84.23, 64.87, 86.96, 75.57, 86.57, 88.81, 73.47),
    "C: COMPEER-URP": (85.66, 76.92, 88.15, 76.51, 87.53, 88.92, 74.51),
}, 100 / 4)  # fmt: skip


def _felt(emotion: float, successes: int, failures: int) -> tuple[float, float, float]:
    """A line of C Table 3, which counts among 100 seekers."""
    return emotion, successes / 100, failures / 100


# C Table 3.
C_SAGE = _rows([(metric, "compeer", "all") for metric in ("emotion", "success", "failure")], {
    "C: InternLM3": _felt(36.13, 6, 40),
    "C: Qwen3": _felt(29.76, 5, 43),
    "C: Qwen2.5-VL": _felt(14.16, 2, 81),
    "C: InternLM3, reasoning": _felt(47.51, 7, 20),
    "C: Qwen3, reasoning": _felt(46.11, 5, 23),
    "C: Qwen2.5-VL, reasoning": _felt(16.18, 4, 75),
    "C: CPsyCounX": _felt(19.29, 0, 55),
    "C: EmoLLM 3.0": _felt(30.54, 3, 48),
    "C: SoulChat 2.0": _felt(43.09, 3, 24),
    "C: COMPEER-SFT": _felt(19.07, 1, 57),
    "C: COMPEER-POR": _felt(29.87, 4, 35),
    "C: COMPEER-UR": _felt(36.21, 5, 30),
    "C: COMPEER-URP": _felt(48.93, 7, 13),
})  # fmt: skip
