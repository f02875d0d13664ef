"""Every data set that can be imported, by name."""

from dataclasses import replace

from pipelines.errors import UnknownName
from pipelines.ingest import chats, clips, posts
from pipelines.ingest.records import BY_MAPPING, DataSet, Origin

_POSTS = "imported_posts"
_HUMAN = Origin("human", "human")
_MODEL = Origin("model", "model")


_CPSYCOUND = DataSet(
    name="cpsycoun",
    title="CPsyCounD",
    about="a text file a dialogue (folder or archive): lines of 来访者： and 心理咨询师：",
    read=chats.read_cpsycoun,
    licence="CC BY 4.0",
    consent="synthetic",
    origin=_MODEL,
    lineage=("counselling_reports",),
    noise="78 stage directions and remarks of the model in 42 of 359 dialogues (（一段时间后）, 共12轮): they go",
    suffixes=(".txt",),
    record_a_file=True,
)
_ESCONV = DataSet(
    name="esconv",
    title="ESConv, FailedESConv",
    about="JSON list: dialog with strategies and feedback, situation, emotion, survey",
    read=chats.read_esconv,
    licence="CC BY-NC 4.0",
    consent="given",
    origin=_HUMAN,
    lang="en",
)
_ALL = (
    DataSet(
        name="psyqa",
        title="PsyQA",
        table=_POSTS,
        about="JSON list: question, description, keywords, answers with strategy spans",
        read=posts.read_psyqa,
        licence="no licence file (public sample; full set under agreement) - private use only, do not republish",
        consent="agreement",
        origin=_HUMAN,
        lineage=("xinli001",),
    ),
    DataSet(
        name="smile",
        title="SMILE",
        about="a JSON file a dialogue (folder or archive): turns of client and counselor",
        read=chats.read_smile,
        licence="CC0-1.0",
        consent="synthetic",
        origin=_MODEL,
        lineage=("psyqa", "xinli001"),
        noise="formulas open 170 of 1,521 replies (不客气), most of them the last: they stay, a dialogue ends so",
        suffixes=(".json",),
        record_a_file=True,
    ),
    _CPSYCOUND,
    replace(
        _CPSYCOUND,
        name="cpsycoune",
        title="CPsyCounE",
        about="a JSON file a dialogue in a folder a topic: texts of 求助者： and 支持者：",
        read=chats.read_cpsycoune,
        noise="",
        suffixes=(".json",),
    ),
    _ESCONV,
    replace(
        _ESCONV,
        name="esconv_tsv",
        title="ESConv, as windows of utterances",
        about="overlapping windows with [Strategy] tags, put together again",
        read=chats.read_esconv_tsv,
        lineage=("esconv",),
        suffixes=(".tsv",),
    ),
    DataSet(
        name="emollm",
        title="EmoLLM",
        about="JSON list: conversation of system, input, output",
        read=chats.read_emollm,
        licence="MIT",
        consent="synthetic",
        origin=_MODEL,
        noise="654 stage directions in 613 of 1,304 turns (（微笑）), pictures: they go",
    ),
    DataSet(
        name="sharegpt",
        title="a file in ShareGPT's form",
        about="JSON or JSON lines: conversations of from (human, gpt) and value",
        read=chats.read_messages,
    ),
    DataSet(
        name="soulchat",
        title="SoulChatCorpus, PsyDTCorpus",
        about="JSON or JSON lines: messages of role (user, assistant) and content",
        read=chats.read_messages,
        licence="Apache-2.0 (repository; the corpus is released for research)",
        consent="synthetic",
        origin=_MODEL,
    ),
    DataSet(
        name="llama_factory",
        title="a file in one of LLaMA-Factory's forms",
        about="JSON or JSON lines: messages, conversations, or instruction, input, output, history",
        read=chats.read_messages,
    ),
    DataSet(
        name="mesc",
        title="MESC",
        about="CSV, an utterance a row: emotion, strategy, season, episode, times",
        read=clips.read_mesc,
        licence="not stated; the words are those of the TV series In Treatment (HBO), all rights reserved",
        origin=_HUMAN,
        lineage=("in_treatment",),
        lang="en",
        suffixes=(".csv",),
    ),
    DataSet(
        name="avamerg",
        title="AvaMERG",
        about="JSON list: conversations with emotion, chain of empathy, speech and faces by reference",
        read=clips.read_avamerg,
        licence="not stated where we looked; EmpatheticDialogues, which it extends, is CC BY-NC 4.0",
        consent="public_licence",
        lineage=("empathetic_dialogues",),
        lang="en",
    ),
    DataSet(
        name="qa_csv",
        title="questions and answers as CSV (Chinese-medical-dialogue-data and its like)",
        table=_POSTS,
        about="CSV: title, description or ask, answer, department or topic",
        read=posts.read_qa_csv,
        licence="MIT (Chinese-medical-dialogue-data; of another file: find out before use)",
        suffixes=(".csv",),
    ),
    DataSet(
        name="mapped",
        title="any set, by a mapping file",
        table=BY_MAPPING,
        about="JSON, JSON lines, CSV, Parquet or a spreadsheet (.xlsx); the mapping file states the rest",
        read=lambda _: iter(()),  # the mapping makes the one that reads
        licence=BY_MAPPING,
        consent=BY_MAPPING,
        lang=BY_MAPPING,
        suffixes=(),
    ),
)
READERS: dict[str, DataSet] = {data_set.name: data_set for data_set in _ALL}


def find(name: str) -> DataSet:
    """The data set `name`; raises UnknownName, which names the nearest."""
    if name not in READERS:
        raise UnknownName("data set", name, READERS)
    return READERS[name]
