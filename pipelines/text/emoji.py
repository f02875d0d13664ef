"""Which characters are emoji, by Unicode's own properties, and faces made of signs."""

# What a picture is made of: pictographs, the letters of flags and skin tones (joiners, selectors and tags are invisible
# characters anyway). A digit, # and * are emoji only under the enclosing key; ©, ® and ™ are signs of writing.
EMOJI = r"[[\p{Extended_Pictographic}\p{Regional_Indicator}\p{Emoji_Modifier}]--[©®™‼⁉]]"
KEYCAP = "\u20e3"
KEYS = "0123456789#*"

# (^_^), （￣▽￣）, (´・ω・`), T_T: something like a mouth between two like eyes. Prose, sums and lists in brackets
# hold a letter, a digit or a Chinese character where a face has none.
MOUTHS = "︵︶︿﹀"  # by their names brackets of vertical text
_EYE = r"[\^><;；=≧≦￣¯´`‵′'ˊˋ•·｡°◕◔●ಠಥ╥╯╰┬TQoOuU@*xX×╬☉⊙∩⊂つд๑⁄~～-]"
_MOUTH = rf"[{MOUTHS}_ω⌒﹏▽△□▿‿∀дДерㅂㅅ皿益エзᴗ◡∇﹃ヮ—.。oOvw]"
_AROUND = r"[^()（）\n0-9A-Za-z一-鿿]{0,3}"
_LEFT, _RIGHT = r"[ヾヽ╮╭ԅง٩つづ╰oO\\]?[(（][oづっつ]?", r"[づっつo]?[)）][ノﾉゞっつづง╯╭╮وoO/]?(?:[︵彡]?┻━┻)?"
FACE = "|".join(
    (
        rf"{_LEFT}{_AROUND}{_EYE}{{1,3}} ?{_MOUTH}{{1,3}} ?{_EYE}{{1,3}}{_AROUND}{_RIGHT}",
        r"[(（][oO]?\^{2}[oO]?[)）]|¯\\_\(ツ\)_/¯|(?-u:\b)(?:T_+T|Q_+Q|t_+t|o_+O|O_+o)(?-u:\b)",
        r"\^[_.ω▽]?\^|[><][_.﹏][><]|=[_ω▽]=|-_+-\|*|[;；]_[;；]|[·•￣][_ω▽﹏][·•￣]",
    )
)
FACE_SIGNS = f"{MOUTHS}^_ω⌒﹏▽△□▿‿∀дДㅂㅅ益エзᴗ◡∇﹃ヮ≧≦￣¯´╥╯ಠಥ"  # every face has one of them

# Faces that lie on their side. :) alone may end a bracket, but not a line.
LYING_FACE = r"(?m)[:;]-[)(]|[：；]-[）)（(]|(?:[:;]\)+ ?)+$"
LYING_FACE_SIGNS = ":;：；"
