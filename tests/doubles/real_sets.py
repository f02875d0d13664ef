"""The four real sets of the shared data that the tests import: reader and path below ../shared/data."""

REAL_SETS = {
    "smile": "zh_multiturn/smile_raw.tar.gz",
    "cpsycoun": "zh_multiturn/cpsycound_raw.tar.gz",
    "psyqa": "zh_qa/PsyQA_example.json",
    "esconv": "en_strategy/FailedESConv.json",
}
