"""Triplets of invented questions, as `rm_triplets` has them."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

THEMES = {
    "睡眠": ("晚上总是失眠睡不着，凌晨三点还醒着", "睡前把手机放远一点，失眠的时候不要看钟，先让身体放松"),
    "父母": ("父母总拿我和表哥比较，我做什么妈妈都不满意", "父母的比较让人受伤，您可以告诉妈妈您的感受"),
    "工作": ("领导把所有加班都给我，同事却早早下班", "和领导约时间谈一谈加班的安排，把手上的工作列出来"),
    "分手": ("男朋友突然提出分手，三年的感情就这样没了", "分手之后难过是自然的，三年的感情需要时间告别"),
    "考研": ("考研第二次失败，书一页也看不进去", "考研失败不等于您失败，先把书放下休息几天"),
    "社交": ("在人多的聚会上我紧张得说不出话，手心出汗", "聚会之前先和一个熟人说话，紧张的时候慢慢呼吸"),
}
GENERIC = "一切都会好起来的，要相信自己。慢慢来，加油。"
ENDS = ("，怎么办？", "，我很难受。", "，谁能帮帮我？", "，这样下去不行。")


def rows(split: str = "train", ends: tuple[str, ...] = ENDS) -> list[dict[str, object]]:
    """Two triplets a question; the questions of a theme are a group, for an answer to one fits the others."""
    found = []
    themes = list(THEMES.values())
    for place, (said, answer) in enumerate(themes):
        other = themes[(place + 1) % len(themes)][1]
        for number, end in enumerate(ends):
            post = f"{split}:{place}-{number}"
            of_post = {"made_from": post, "group_id": f"g-{split}-{place}", "split": split}
            texts = {"query": said + end, "positive": f"{answer}。"}
            for kind, negative in (("generic", GENERIC), ("other_answer", other)):
                found.append({"row_id": f"{post}/{kind}", "kind": kind, "negative": negative} | of_post | texts)
    return found


def write(path: Path, found: list[dict[str, object]]) -> Path:
    names = ("row_id", "made_from", "group_id", "split", "kind", "query", "positive", "negative")
    schema = pa.schema([(name, pa.string()) for name in names])
    pq.write_table(pa.Table.from_pylist(found, schema=schema), path)
    return path
