"""The dialogues that SAGE's authors recorded: every emotion follows from the changes."""

import gzip
import json
from pathlib import Path

from pipelines.evaluate.emotions import end_of, replay_emotions


def test_every_emotion_of_every_recorded_dialogue_is_reproduced(shared: Path):
    points = wrong = 0
    for path in sorted((shared / "sage").glob("*.jsonl.gz")):
        for line in gzip.decompress(path.read_bytes()).decode().splitlines():
            dialogue = json.loads(line)
            recorded = [turn["emotion-point"] for turn in dialogue["history"] if turn["role"] == "user"]
            emotions = replay_emotions(dialogue["history"])
            points += len(recorded)
            wrong += emotions != recorded or emotions[-1] != dialogue["emo_point"]
            assert not any(map(end_of, emotions[:-1])), "it goes on until it ends"
            assert len(emotions) <= 10, "as published"
    assert points > 400
    assert wrong == 0
