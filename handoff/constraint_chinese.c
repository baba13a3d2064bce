/*
 * constraint_chinese.c - the Chinese rules: phrases, without word boundaries.
 *
 * The sentence is brought to simplified characters as far as the phrases need it. First the exceptions
 * are blanked out ("不需要", "应该是", "用户"), then one phrase that is left makes the sentence a
 * constraint. The last table says what else a sentence may be. A phrase with ^ counts at the start of a clause only, after words such as "请".
 */
#include "handoff/constraints.h"

#include <string.h>

#include "base/buf.h"
#include "base/memory.h"

/* Traditional characters that occur in the phrases. */
static const char *const simplified[][2] = {
	{"務", "务"}, {"應", "应"}, {"須", "须"}, {"絕", "绝"}, {"對", "对"}, {"別", "别"},
	{"動", "动"}, {"嚴", "严"}, {"許", "许"}, {"準", "准"}, {"僅", "仅"}, {"統", "统"},
	{"規", "规"}, {"範", "范"}, {"約", "约"}, {"風", "风"}, {"優", "优"}, {"選", "选"},
	{"擇", "择"}, {"實", "实"}, {"現", "现"}, {"請", "请"}, {"個", "个"}, {"當", "当"},
	{"盡", "尽"}, {"變", "变"}, {"為", "为"}, {"時", "时"}, {"記", "记"}, {"無", "无"},
	{"論", "论"}, {"過", "过"}, {"從", "从"}, {"還", "还"}, {"後", "后"}, {"來", "来"},
	{"問", "问"}, {"會", "会"}, {"運", "运"}, {"強", "强"}, {"採", "采"}, {"寫", "写"},
	{"開", "开"}, {"發", "发"}, {"碼", "码"}, {"語", "语"}, {"說", "说"}, {"維", "维"},
	{"護", "护"}, {"讓", "让"}, {"將", "将"}, {"給", "给"}, {"這", "这"}, {"裡", "里"},
	{"與", "与"}, {"併", "并"}, {"內", "内"}, {"遠", "远"}, {"則", "则"}, {"關", "关"},
	{"見", "见"}, {"編", "编"}, {"據", "据"},
};

static const char *const exceptions[] = {
	"不需要",   "无需",	"不用担心",	"不用谢",   "不用急", "不用管",	    "不必",
	"要不要",   "需不需要", "用不用",	"应该是",   "应该没", "应该可以",   "应该不会",
	"应该已经", "应该就",	"必须是字符串", "只有",	    "不着急", "从来没",	    "从没",
	"从未",	    "用户",	"作用",		"调用",	    "引用",   "占用",	    "可用",
	"有用",	    "没用",	"费用",		"应用",	    "通用",   "用于",	    "用例",
	"用途",	    "用时",	"用了",		"用过",	    "启用",   "禁用",	    "复用",
	"重用",	    "无用",	"用法",		"用的",	    "好用",   "常用",	    "公用",
	"共用",	    "滥用",	"用量",		"用完",	    "用得",   "副作用",	    "不能复现",
	"不能理解", "不能确定", "不能正常",	"别人",	    "别的",   "区别",	    "类别",
	"级别",	    "分别",	"特别",		"识别",	    "个别",   "性别",	    "要求很高",
	"注意到",   "总是失败", "总是报错",	"总是崩溃", "限制了", "希望能尽快", "没有限制",
	"先看看",   "至少现在", "保留了",	"使用率",   "使用了", "使用过",	    "的使用",
	"正在使用", "必须承认", "最好的",	"最少的",   "不要紧", "选项",	    "选中",
	"按钮",	    "按键",	"按下",		"重命名",   "要不",   "不可能",	    "不可用",
	"不得不",   "不得而知", "差别",		"告别",	    "辨别",
};

static const char *const phrases[] = {
	/* prohibitions */
	"不要",
	"勿",
	"禁止",
	"严禁",
	"杜绝",
	"不得",
	"不准",
	"不许",
	"不允许",
	"不可",
	"不行",
	"不能",
	"不应",
	"不该",
	"不宜",
	"不用",
	"不使用",
	"不再",
	"不采用",
	"不引入",
	"不依赖",
	"不改",
	"不动",
	"不支持",
	"不接受",
	"不希望",
	"不想",
	"不喜欢",
	"不建议",
	"不推荐",
	"不考虑",
	"不做",
	"不加",
	"不写",
	"不碰",
	"不删",
	"不提交",
	"不推送",
	"不合并",
	"不升级",
	"不留",
	"不带",
	"不含",
	"不包括",
	"不包含",
	"不变",
	"不超",
	"不大于",
	"不多于",
	"不少于",
	"不低于",
	"不高于",
	"不小于",
	"不是",
	"绝不",
	"决不",
	"绝对",
	"永远",
	"从不",
	"千万",
	"避免",
	"防止",
	"杜绝",
	"拒绝",
	"停止",
	"^别",
	"别动",
	"别碰",
	"别改",
	"别用",
	"别再",
	"别去",
	"别把",
	"别删",
	"别加",
	"别在",
	"别让",
	"别提",
	"别推",
	"别升",
	"别引",
	"别写",
	"别做",
	"别忘",
	"别乱",
	"别给",
	"别搞",
	"别弄",
	"别直接",
	"别擅自",
	"别随便",
	"都别",
	"也别",
	"就别",
	"但别",
	"请别",
	"没有我的",
	"未经",
	"擅自",
	"除非",
	"除了",
	"以外",
	"之外",
	"一概",
	"免谈",
	/* obligations */
	"必须",
	"务必",
	"必需",
	"必要",
	"一定要",
	"一定",
	"应当",
	"应该",
	"应",
	"需要",
	"需",
	"得用",
	"得先",
	"要求",
	"要先",
	"要用",
	"要有",
	"要与",
	"要和",
	"要跟",
	"要能",
	"要在",
	"要保",
	"要支",
	"要兼",
	"要遵",
	"要符",
	"都要",
	"也要",
	"还要",
	"只",
	"仅",
	"限于",
	"一律",
	"统一",
	"始终",
	"总是",
	"永久",
	"保持",
	"保留",
	"维持",
	"沿用",
	"遵循",
	"遵守",
	"遵照",
	"符合",
	"按照",
	"依照",
	"根据",
	"参照",
	"确保",
	"保证",
	"记住",
	"记得",
	"注意",
	"切记",
	"规范",
	"规定",
	"规则",
	"约定",
	"约束",
	"限制",
	"原则",
	"标准",
	"准则",
	"硬性",
	"强制",
	"任何情况",
	"无论",
	"不管",
	"兼容",
	"一致",
	"固定",
	"锁定",
	"仍然",
	"仍",
	"照旧",
	"原样",
	"先问",
	"问我",
	"同意",
	"批准",
	"确认",
	"之前先",
	"前先",
	"再写",
	"再做",
	"再改",
	"再提交",
	/* limits */
	"最多",
	"至多",
	"至少",
	"最少",
	"上限",
	"下限",
	"以内",
	"以下",
	"以上",
	"之内",
	"控制在",
	"超过",
	"不足",
	"低于",
	"高于",
	"小于",
	"大于",
	/* choices */
	"用",
	"采取",
	"选择",
	"选",
	"优先",
	"首选",
	"偏好",
	"倾向",
	"而不是",
	"而非",
	"代替",
	"替代",
	"换成",
	"换用",
	"改成用",
	"取代",
	"尽量",
	"尽可能",
	"最好",
	"希望",
	"想要",
	"宁可",
	"宁愿",
	"建议",
	"风格",
	"格式",
	"缩进",
	"命名",
	"编码",
	"语言",
	"中文",
	"英文",
	"放在",
	"放到",
	"写在",
	"存到",
	"存在",
	"开头",
	"结尾",
	"为准",
	"为主",
	"以后",
	"今后",
	"从现在",
	"默认",
	"就按",
	"按方案",
	"按",
	"照着",
	"基于",
	"面向",
	"针对",
	"目标平台",
	"版本",
	"所有",
	"每个",
	"每次",
	"全部",
	"凡是",
	"都是",
	"都在",
	"都得",
	"都放",
	"都写",
	"当错误",
	"当作",
	"视为",
	"给我看",
	"得能",
	"得继续",
	"也得",
	"只得",
	"得在",
	"得有",
	"离它",
	"远点",
};

/* What a sentence is that is none. With ^: how a task or an answer begins. */
static const char *const others[] = {
	"不需要", "无需",  "只有",  "反应",    "秒",	 "^修",	  "^实现",  "^添",   "^加",
	"^给",	  "^查",   "^看",   "^写",     "^总结",	 "^重构", "^找",    "^继续", "^分析",
	"^解释",  "^说明", "^检查", "^排查",   "^调查",	 "^优化", "^创建",  "^新建", "^生成",
	"^整理",  "^帮",   "^列",   "^运行",   "^跑",	 "^测试", "^删",    "^更新", "^升级",
	"^比较",  "^对比", "^翻译", "^读",     "^打开",	 "^把",	  "^将",    "^告诉", "^研究",
	"^调试",  "^定位", "^复现", "^提取",   "^移动",	 "^合并", "^回滚",  "^撤销", "^介绍",
	"^描述",  "^评审", "^审查", "^补",     "^搭建",	 "^设计", "^完成",  "^开始", "^试",
	"^画",	  "^打印", "^统计", "^搜索",   "^处理",	 "^解决", "^迁移",  "^接入", "^封装",
	"^拆",	  "^改",   "^做",   "^去",     "^谢",	 "^感谢", "^好",    "^嗯",   "^对",
	"^是",	  "^可以", "^行",   "^没问题", "^辛苦",	 "^不错", "^干得",  "^太",   "^厉害",
	"^你好",  "^我",   "^他",   "^她",     "^同事",	 "^客户", "^用户",  "了",    "过",
	"昨天",	  "今天",  "刚才",  "刚刚",    "最近",	 "上周",  "已经",   "之前",  "曾",
	"觉得",	  "认为",  "好像",  "似乎",    "看起来", "可能",  "也许",   "大概",  "应该是",
	"慢",	  "报错",  "失败",  "崩溃",    "错误",	 "卡",	  "异常",   "问题",  "泄漏",
	"不对",	  "奇怪",  "不错",  "漂亮",    "没有",	 "还没",  "来得及", "喜欢",  "日志",
	"返回",	  "显示",  "着急",  "随意",    "随便",
};

/* Words before a clause's verb. */
static const char *const fillers[] = {"请",   "也", "就",   "但",   "但是", "而且", "并且",
				      "然后", "都", "另外", "还有", "同时", "还"};

static size_t utf8_len(unsigned char c)
{
	return c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}

bool constraint_is_chinese(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)s[i] >= 0xe3)
			return true;
	return false;
}

static const char *simplify_char(const char *s, size_t n)
{
	for (size_t i = 0; n == 3 && i < ARRAY_SIZE(simplified); i++)
		if (!memcmp(s, simplified[i][0], 3))
			return simplified[i][1];
	return s;
}

static void simplify(const char *s, size_t n, struct buf *out)
{
	for (size_t i = 0; i < n;) {
		size_t len = MIN(utf8_len((unsigned char)s[i]), n - i);

		buf_add(out, simplify_char(s + i, len), len);
		i += len;
	}
}

static void blank_exceptions(struct buf *text)
{
	for (size_t k = 0; k < ARRAY_SIZE(exceptions); k++) {
		size_t n = strlen(exceptions[k]);
		char *at = text->data;

		while ((at = memmem(at, text->len - (size_t)(at - text->data), exceptions[k], n))) {
			/* Not blanks, and nothing that a phrase could begin in. */
			memset(at, '_', n);
			at += n;
		}
	}
}

/* Is `at` the start of a clause, fillers aside? */
static bool clause_begins(const char *text, size_t at)
{
	for (bool again = true; again;) {
		again = false;
		while (at && text[at - 1] == ' ')
			at--;
		for (size_t i = 0; i < ARRAY_SIZE(fillers); i++) {
			size_t n = strlen(fillers[i]);

			if (at >= n && !memcmp(text + at - n, fillers[i], n)) {
				at -= n;
				again = true;
			}
		}
	}
	if (!at || ((unsigned char)text[at - 1] < 0x80 && strchr(",.;:!?-)(*\n\t", text[at - 1])))
		return true;
	return at >= 3 && (!memcmp(text + at - 3, "，", 3) || !memcmp(text + at - 3, "：", 3) ||
			   !memcmp(text + at - 3, "、", 3) || !memcmp(text + at - 3, "）", 3));
}

static bool has_phrase(const struct buf *text, const char *phrase)
{
	bool anchored = *phrase == '^';
	const char *word = phrase + anchored, *at = text->data;
	size_t n = strlen(word);

	while ((at = memmem(at, text->len - (size_t)(at - text->data), word, n))) {
		if (!anchored || clause_begins(text->data, (size_t)(at - text->data)))
			return true;
		at += n;
	}
	return false;
}

static bool has_any(const struct buf *text, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (has_phrase(text, list[i]))
			return true;
	return false;
}

bool constraint_in_chinese(const char *bare, size_t n)
{
	AUTO_BUF struct buf text = BUF_INIT;

	if (!constraint_is_chinese(bare, n))
		return false;
	simplify(bare, n, &text);
	blank_exceptions(&text);
	return has_any(&text, phrases, ARRAY_SIZE(phrases));
}

bool constraint_unclear_chinese(const char *bare, size_t n)
{
	AUTO_BUF struct buf text = BUF_INIT;

	simplify(bare, n, &text);
	return text.len > 4 * 3 && !has_any(&text, others, ARRAY_SIZE(others));
}
