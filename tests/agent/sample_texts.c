/*
 * sample_texts.c - expands templates: %w a word, %n a name with underscores, %c one in camel case,
 * %C a type's name, %u one in capitals, %s a minified name, %d a number, %f a fraction, %t a time,
 * %h hex, %b base64, %z Chinese, %j Japanese, %k Korean; %% a percent sign.
 */
#include "sample_texts.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/memory.h"

static const char *const words[] = {
	"the",	    "a",	 "of",	    "and",     "to",	     "in",	   "that",
	"is",	    "for",	 "with",    "which",   "when",	     "because",	   "before",
	"after",    "not",	 "only",    "every",   "parser",     "buffer",	   "request",
	"response", "window",	 "token",   "model",   "agent",	     "process",	   "signal",
	"channel",  "frame",	 "record",  "journal", "history",    "budget",	   "limit",
	"error",    "warning",	 "message", "result",  "child",	     "parent",	   "branch",
	"commit",   "directory", "file",    "system",  "memory",     "reader",	   "writer",
	"software", "license",	 "freedom", "copies",  "conditions", "permission", "distribute",
	"notice",   "provided",	 "source",  "work",    "terms",	     "rights",	   "modified",
	"version",  "general",	 "public",  "users",   "developer",  "understand", "information",
	"changes",  "does",	 "can",	    "must",    "should",     "never",	   "again",
	"time",	    "second",	 "waits",   "returns", "starts",     "ends",	   "fails",
	"keeps",    "small",	 "large",   "whole",   "next",	     "last",	   "first",
};

static const char *const chinese[] = {
	"父进程会重新检查", "每个代理都有自己的", "工作树",	"上下文窗口",
	"已经完成的任务",   "在启动时读取配置",	  "失败的测试", "因为缓存已经过期，",
	"如果没有结果，",   "就把日志写入文件。", "用户的原话", "必须完整保留。",
	"不允许修改",	    "接口的返回值",	  "请稍后再试", "默认为二十秒。",
};
static const char *const japanese[] = {
	"このファイルは",	  "読み込まれました。",	  "モジュールが見つかりません。",
	"設定を確認してください", "プロセスを終了します", "次のテストに失敗しました。",
	"型が正しくないため、",	  "パラメーターには",
};
static const char *const korean[] = {
	"파일을 찾을 수 없습니다. ",
	"설정을 다시 확인하세요. ",
	"요청이 실패했습니다. ",
	"모듈에는 기본 내보내기가 없습니다. ",
	"이 형식은 ",
	"매개 변수에 ",
	"할당할 수 없습니다. ",
};

static const char *const prose[] = {
	"The %w %w %w the %w, %w %w the %w of a %w %w. ",
	"%w %w %w %w %w; %w the %w %w, and %w %w %w %w (see the %w %w). ",
	"If the %w %w %w %w, you %w %w %w %w %w to the %w.\n\n",
	"Nothing %w %w %w, \"%w %w\", the %w's %w - %w %w %w %w.\n",
	"You may %w %w of the %w %w under the %w of %w %w %d.\n\n  %d. %w %w %w.\n\n",
	NULL};
static const char *const c_code[] = {
	"/* %w %w the %w %w %w. */\nstatic int %n(struct %n *%w, size_t n)\n{\n\tint64_t %w = "
	"%d;\n\n",
	"\tfor (size_t i = 0; i < %w->n_%w; i++) {\n\t\tif (!%n(%w->%w[i]))\n\t\t\treturn "
	"-1;\n\t}\n",
	"\tif (%n(%w, &%w, err) < 0)\n\t\treturn err_set(err, %u, \"cannot %w '%%s'\", %w);\n",
	"\t%w->%n = %n(%w) + %d;\n",
	"#define %u %d\n",
	"#include \"%w/%n.h\"\n",
	"\tassert_int_equal(%n(&%w), %d);\n",
	"\treturn %w;\n}\n\n",
	NULL};
static const char *const python[] = {
	"def %n(self, %w, %w=None):\n    \"\"\"%w %w the %w of %w.\"\"\"\n",
	"    for %w in self.%n(%w):\n        if %w not in %w:\n            raise %C(f\"no "
	"{%w}\")\n",
	"    %w = {\"%w\": %d, \"%w\": [%w, %w]}\n",
	"    return self.%w.%n(%w, key=lambda x: x[%d])\n\n",
	"class %C(%C):\n    # %w %w %w\n",
	"import %w\nfrom %w.%n import %C\n\n",
	"    assert %n(%w) == %d, \"%w %w\"\n",
	NULL};
static const char *const json[] = {
	"  \"%w\": {\n    \"version\": \"%d.%d.%d\",\n    \"%c\": true,\n    \"%w\": [\"%w\", "
	"\"%w\"]\n  },\n",
	"{\"id\":%d,\"%n\":\"%w "
	"%w\",\"%w\":null,\"sha\":\"%h\",\"items\":[{\"%w\":%f},{\"%w\":%d}]}\n",
	"    { \"name\": \"%n\", \"path\": \"%w/%w/%n.json\", \"size\": %d },\n", NULL};
static const char *const logs[] = {
	"2026-11-30T%t.%dZ INFO  [%w-%d] %w %w %h took %d ms\n",
	"Nov 30 %t host1 %w[%d]: %w %w from 192.168.%d.%d port %d\n",
	"10.%d.%d.%d - - [30/Nov/2026:%t +0000] \"GET /%w/%w?id=%d HTTP/1.1\" 200 %d \"-\"\n",
	"%w/%n.c:%d:%d: warning: unused variable '%n' [-Wunused-variable]\n",
	"%d/620 tests/%n.py::test_%n PASSED [%d%%]\n",
	NULL};
static const char *const cjk[] = {"%z%z%z\n", "%z“%z”%z%z（%w.md）%z\n\n", "%j%j%j\n",
				  "%k%k%k\n", "%z%z，%z%z%z%d%z\n",	   NULL};
static const char *const base64[] = {"%b%b%b%b\n", "%h%h%h%h  %w/%n.bin\n", "%b%b%b%b%b%b%b%b",
				     NULL};
static const char *const minified[] = {
	"function %s(%s,%s){return %s.%c?%s.%c(%s):null}",
	"var %s=%s(%d),%s=%s.%c,%s=\"%w-%w\";",
	"if(%s&&!%s.%c)for(var %s=0;%s<%s.length;%s++)%s[%s]=%s(%s,%d);",
	"%s.prototype.%c=function(%s){this.%c(%s,!1)},",
	"case\"%c\":%s=%s|%d;break;",
	NULL};

static const struct {
	const char *name;
	const char *const *templates;
} kinds[] = {
	{"prose", prose}, {"c", c_code}, {"python", python}, {"json", json},
	{"logs", logs},	  {"cjk", cjk},	 {"base64", base64}, {"minified", minified},
};

size_t sample_kinds(void)
{
	return ARRAY_SIZE(kinds);
}

const char *sample_kind(size_t kind)
{
	return kinds[kind].name;
}

/* A linear congruence of 64 bits: its high bits are good enough, and it never changes. */
static uint32_t draw(uint64_t *state, uint32_t below)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(*state >> 33) % below;
}

static const char *draw_word(uint64_t *state)
{
	return words[draw(state, ARRAY_SIZE(words))];
}

/* Parts joined as a style wants it: 'n' under_scores, 'c' camelCase, 'C' PascalCase, 'u' CAPITALS. */
static void add_name(struct buf *out, uint64_t *state, char style)
{
	size_t parts = 1 + draw(state, 3);

	for (size_t i = 0; i < parts; i++) {
		const char *word = draw_word(state);
		bool capital = style == 'u' || style == 'C' || (style == 'c' && i);

		if (i && (style == 'n' || style == 'u'))
			buf_addc(out, '_');
		for (size_t k = 0; word[k]; k++)
			buf_addc(out, capital && (k == 0 || style == 'u') ? (char)(word[k] - 32)
									  : word[k]);
	}
}

static void add_random(struct buf *out, uint64_t *state, const char *digits, size_t n)
{
	uint32_t base = (uint32_t)strlen(digits);

	for (size_t i = 0; i < n; i++)
		buf_addc(out, digits[draw(state, base)]);
}

/* One draw a statement: the order of arguments is the compiler's own. */
static void add_time(struct buf *out, uint64_t *state)
{
	buf_addf(out, "%02" PRIu32, draw(state, 24));
	buf_addf(out, ":%02" PRIu32, draw(state, 60));
	buf_addf(out, ":%02" PRIu32, draw(state, 60));
}

static void add_field(struct buf *out, uint64_t *state, char code)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/";
	static const uint32_t sizes[] = {10, 100, 1000, 100000};

	switch (code) {
	case 'w': buf_adds(out, draw_word(state)); break;
	case 'n':
	case 'c':
	case 'C':
	case 'u': add_name(out, state, code); break;
	case 's': buf_addc(out, letters[draw(state, 52)]); break;
	case 'd': buf_addf(out, "%" PRIu32, draw(state, sizes[draw(state, 4)])); break;
	case 'f': buf_addf(out, "%" PRIu32 ".125", draw(state, 90)); break;
	case 't': add_time(out, state); break;
	case 'h': add_random(out, state, "0123456789abcdef", 16); break;
	case 'b': add_random(out, state, letters, 19); break;
	case 'z': buf_adds(out, chinese[draw(state, ARRAY_SIZE(chinese))]); break;
	case 'j': buf_adds(out, japanese[draw(state, ARRAY_SIZE(japanese))]); break;
	case 'k': buf_adds(out, korean[draw(state, ARRAY_SIZE(korean))]); break;
	default: buf_addc(out, code); break;
	}
}

void sample_text(size_t kind, size_t piece, struct buf *out)
{
	const char *const *templates = kinds[kind].templates;
	uint64_t state = kind * 1000 + piece + 1;
	size_t want, start = out->len;
	uint32_t n = 0;

	while (templates[n])
		n++;
	draw(&state, 2);
	want = 1000 + draw(&state, 4000);
	while (out->len - start < want) {
		for (const char *p = templates[draw(&state, n)]; *p; p++) {
			if (*p == '%')
				add_field(out, &state, *++p);
			else
				buf_addc(out, *p);
		}
	}
}
