"""The topics of Xinli001's question picker, and M's ten English categories mapped to them.

Eleven main topics, 118 subtopics (出轨 stands under both 恋爱 and 婚姻). M Table 1 counts ten categories: its
"Other" holds what is no one's trouble, 科普 (popular science) and 热点 (talk of the day).
"""

_SUBTOPICS = {
    "行为": (
        "熬夜 拖延 疑病 逃避 空虚 强迫 讨好 控制 攻击 应激 暴力 自虐 洗脑 性欲 暴食节食 杂乱 懒惰 手机依赖 困惑 焦虑"
    ),
    "治疗": (
        "心理咨询 躯体反应 精神障碍 疾病诊断 心理危机 病态人格 治疗方法 "
        "心理测评 流派方案 倾诉倾听 医院机构 行为失常 创伤治疗"
    ),
    "人际": "人际边界 社交恐惧 沟通 社交软件 朋友 舍友同学 同事 矛盾冲突 欺骗与信任 同理心 社会适应",
    "成长": "自我成长 自我接纳 压力管理 性格完善 发展规律 工作学习 人格特质 人生意义 儿童成长 学生成长",
    "情绪": "情绪调节 抑郁情绪 情绪智力 脆弱流泪 恐慌无助 内疚羞耻 焦虑情绪 疗愈方法 表达情绪",
    "恋爱": "单身 失恋 好感 吵架 出轨 依赖依恋 恋爱经营 安全感 性行为 性取向 处女情结 挽回前任",
    "婚姻": "婚前 相亲 出轨 婚姻观念 生育观念 婆媳岳婿 产前产后 离婚 性生活 婚姻经营",
    "家庭": "成长过程 子女沟通 父母沟通 家庭创伤 家庭关系 家人健康 家人控制 品行障碍",
    "职业": "工作压力 职业管理 择业技巧 职场人际 中年危机 工作疲倦",
    "科普": "心理效应 实验研究 书籍 社会心理 学研会 学科讨论 考证读研 心理类型 网络心理 谣言 犯罪心理 名词解释",
    "热点": "热点话题 影视 公共事件 经典问题 解梦 性心理 互动反馈",
}
TAXONOMY: dict[str, tuple[str, ...]] = {topic: tuple(names.split()) for topic, names in _SUBTOPICS.items()}

# M Table 1.
CATEGORY_OF: dict[str, str] = {
    "行为": "Behavior",
    "治疗": "Therapy",
    "人际": "Interpersonal",
    "成长": "Growth",
    "情绪": "Emotion",
    "恋爱": "Romantic Relationship",
    "婚姻": "Marriage",
    "家庭": "Family",
    "职业": "Career",
    "科普": "Other",
    "热点": "Other",
}
CATEGORIES = tuple(dict.fromkeys(CATEGORY_OF.values()))


def main_topics_of(subtopic: str) -> tuple[str, ...]:
    """The main topics that list `subtopic`: none, one, or (出轨) two."""
    return tuple(topic for topic, subtopics in TAXONOMY.items() if subtopic in subtopics)


def split_keywords(keywords: list[str]) -> tuple[str | None, list[str]]:
    """The main topic and the other labels among `keywords`, as sources list them side by side.

    The first main topic wins; where none is named it follows from the first subtopic that has just one.
    Labels outside the taxonomy stay among the subtopics: they are the source's own words.
    """
    words = list(dict.fromkeys(word.strip() for word in keywords if word.strip()))
    topic = next((word for word in words if word in TAXONOMY), None)
    subtopics = [word for word in words if word != topic]
    if topic is None:
        topic = next((mains[0] for word in subtopics if len(mains := main_topics_of(word)) == 1), None)
    return topic, subtopics
