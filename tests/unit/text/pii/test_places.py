"""Schools, employers, hospitals and addresses: where they are named and where they are not."""

import polars as pl

from pipelines.text.pii import vocabulary as voc
from pipelines.text.pii.redaction import find

NAMED = [
    ("我在北京师范大学读大二", "school", "北京师范大学"),
    ("我在育才中学读初二", "school", "育才中学"),
    ("他是市一中的学生", "school", "市一中"),
    ("我在101中学读高一", "school", "101中学"),
    ("我在清华读博", "school", "清华"),
    ("考上了复旦，却不开心", "school", "复旦"),
    ("我在臺灣師範大學讀書", "school", "臺灣師範大學"),
    ("我在鑫达科技有限公司做会计", "employer", "鑫达科技有限公司"),
    ("我在华为上班", "employer", "华为"),
    ("我是格力的流水线工人", "employer", "格力"),
    ("我在朝阳区税务局工作", "employer", "朝阳区税务局"),
    ("我在县档案局整理档案", "employer", "县档案局"),
    ("在市图书馆当管理员", "employer", "市图书馆"),
    ("公司叫云图传媒，只有五个人", "employer", "云图传媒"),
    ("上周去省人民医院看了心理科", "hospital", "省人民医院"),
    ("我在北京安定医院住院", "hospital", "北京安定医院"),
    ("我在301医院做的检查", "hospital", "301医院"),
    ("去华西看病要排很久", "hospital", "华西"),
    ("我住在中山路128号", "address", "中山路128号"),
    ("我住阳光花园小区3栋2单元501室", "address", "阳光花园小区3栋2单元501室"),
    ("寄到浙江省杭州市西湖区文三路88号", "address", "浙江省杭州市西湖区文三路88号"),
    ("我住5号楼302室", "address", "5号楼302室"),
    ("老家在清河县", "address", "清河县"),
    ("我在柳树沟村住了十年", "address", "柳树沟村"),
    ("住在翡翠城A区12-3-501", "address", "翡翠城A区12-3-501"),
    ("住在臺北市大安區和平東路二段106號", "address", "臺北市大安區和平東路二段106號"),
]
NOT_NAMED = [
    "我在一所普通大学读大三，想考重点高中的那几年很苦。",
    "我孩子小学三年级，我大学毕业三年了。",
    "师范大学和理工大学哪个好？考上清华北大的人不一定快乐。",
    "我在一家互联网公司上班，想从小公司跳槽到大公司。",
    "用华为手机在淘宝上买东西，去银行取钱，在超市排队。",
    "我去医院检查，听说三甲医院的心理科很难挂号，我住过精神病院。",
    "我在成都工作，他在重庆，我是湖南人。",
    "人生的路还很长，回家的路上我哭了，思路很乱，走了弯路。",
    "我住在农村，我们小区的人总盯着我，我在街上看见了他。",
    "在房间里、被窝里、群里、梦里、黑暗里。",
    "某大学、XX公司和那家医院。",
    "我从大学宿舍搬出来，催收打到单位是违法的，可以去最近医院的急诊。",
]


def test_what_is_named_is_found_and_what_is_not_stays():
    wanted = {text: [place] for text, *place in NAMED} | {key: [] for key in NOT_NAMED}
    places: dict[str, list[list[str]]] = {text: [] for text in wanted}
    for row, start, end, kind, _ in find(pl.Series(list(wanted))).iter_rows():
        text = list(wanted)[row]
        places[text].append([kind, text.encode()[start:end].decode()])
    assert {text: one for text, one in places.items() if one != wanted[text]} == {}


def test_every_list_of_the_lexicon_has_a_use():
    used = {name for kind in voc.lexicon("places")["of_kind"].values() for names in kind.values() for name in names}
    used |= {"administration", "place", "stop", "name_word", "generic", "no_address", "estate"}  # of all, or a value
    assert set(voc.lexicon("places")["classes"]) == used
