"""Small files in the forms of MESC and AvaMERG, whose turns have clips; invented."""

from typing import Any

MESC = """Utterance,Speaker,Emotion,Strategy,Dialogue_ID,Utterance_ID,Season,Episode,StartTime,EndTime
"Well, I came back.",Client,sadness,undefined,0,0,1,2,"00:00:54,097","00:00:55,113"
And it hurt.,Client,sadness,undefined,0,1,1,2,"00:00:55,200","00:00:56,000"
A lot.,Client,anger,undefined,0,2,1,2,"00:00:56,200","00:00:57,000"
What hurt?,Therapist,neutral,Open question,0,3,1,2,"00:01:00,000","00:01:01,500"
Coming back.,Client,fear,undefined,0,4,1,2,"00:01:02,000","00:01:03,000"
You came back.,Therapist,neutral,Structuring the therapy,0,5,1,2,"00:01:04,000","00:01:05,000"
Hello?,Client,neutral,undefined,1,0,1,2,"00:02:00,000","00:02:01,000"
,Therapist,neutral,Approval,1,1,1,2,"00:02:02,000","00:02:03,000"
Late.,Client,neutral,undefined,2,2,1,2,"00:03:02,000","00:03:03,000"
Early.,Client,neutral,undefined,2,0,1,2,"00:03:00,000","00:03:01,000"
"""

SAID = ("I lost my keys again.", "Oh no, again?", "Third time.")
HISTORY = [{"index": i, "role": ("speaker", "listener")[i % 2], "utterance": text} for i, text in enumerate(SAID)]
AVAMERG: dict[str, Any] = {
    "conversation_id": "00042",
    "speaker_profile": {"timbre": "high", "ID": 7},
    "listener_profile": {"timbre": "low", "ID": 31},
    "topic": "Life events",
    "turns": [
        {
            **{"context": "I lost my keys.", "dialogue_history": HISTORY[:1], "response": SAID[1]},
            "chain_of_empathy": {"speaker_emotion": "annoyed", "emotion_cause": "lost keys"},
        },
        {"dialogue_history": HISTORY, "response": "That is hard.", "chain_of_empathy": {"speaker_emotion": "sad"}},
    ],
}
