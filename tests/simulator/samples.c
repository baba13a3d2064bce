/*
 * samples.c - makes the texts.
 *
 * The vocabulary holds no word that sounds like a rule ("must", "never"): what a summary repeats of it must not look
 * like an invention.
 */
#include "samples.h"

#include <stdio.h>

#include "base/memory.h"
#include "base/text.h"

#define POOL_BYTES ((size_t)1 << 20)

static struct buf pools[SAMPLE_KINDS];

static const char *const words[] = {
	"parser", "window",  "value",  "table",	 "reads",  "result", "branch",	"socket", "error",
	"buffer", "counter", "thread", "module", "called", "before", "after",	"index",  "length",
	"header", "stream",  "token",  "round",	 "worker", "queue",  "message", "folder", "commit",
	"server", "client",  "answer", "signal", "output", "input",  "state",	"check",  "walks",
};

static const char *const chinese[] = {"解析", "缓冲", "函数", "结果", "文件", "模块",
				      "线程", "窗口", "数据", "服务", "测试", "读取",
				      "返回", "长度", "消息", "队列", "分支", "提交"};

static const char *word(struct random *r)
{
	return words[random_next(r) % ARRAY_SIZE(words)];
}

static void line_of_prose(struct buf *out, struct random *r)
{
	int64_t n = random_between(r, 5, 14);

	for (int64_t i = 0; i < n; i++)
		buf_addf(out, "%s%s", i ? " " : "The ", word(r));
	buf_adds(out, ".\n");
}

static void line_of_c(struct buf *out, struct random *r)
{
	buf_addf(out, "\tif (%s->%s_%s > %d)\n\t\treturn %s_%s(%s, \"%s\", %d);\n", word(r),
		 word(r), word(r), (int)random_between(r, 0, 4096), word(r), word(r), word(r),
		 word(r), (int)random_between(r, 0, 99));
}

static void line_of_python(struct buf *out, struct random *r)
{
	buf_addf(out, "    %s = self.%s.get('%s', %s[%d:])\n", word(r), word(r), word(r), word(r),
		 (int)random_between(r, 0, 9));
}

static void line_of_json(struct buf *out, struct random *r)
{
	buf_addf(out, "{\"%s\": %d, \"%s\": [\"%s\", null], \"%s\": {\"%s\": %d.%d}},\n", word(r),
		 (int)random_between(r, 0, 99999), word(r), word(r), word(r), word(r),
		 (int)random_between(r, 0, 9), (int)random_between(r, 0, 999));
}

static void line_of_log(struct buf *out, struct random *r)
{
	buf_addf(out, "2026-11-%02d %02d:%02d:%02d.%03d [%08x] %s: %s %s (%d)\n",
		 (int)random_between(r, 1, 30), (int)random_between(r, 0, 23),
		 (int)random_between(r, 0, 59), (int)random_between(r, 0, 59),
		 (int)random_between(r, 0, 999), (unsigned)random_next(r), word(r), word(r),
		 word(r), (int)random_between(r, 1, 70000));
}

static void line_of_chinese(struct buf *out, struct random *r)
{
	int64_t n = random_between(r, 5, 12);

	for (int64_t i = 0; i < n; i++)
		buf_adds(out, chinese[random_next(r) % ARRAY_SIZE(chinese)]);
	buf_adds(out, "。\n");
}

static void line_of_base64(struct buf *out, struct random *r)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (int i = 0; i < 76; i++)
		buf_addc(out, digits[random_next(r) % 64]);
	buf_addc(out, '\n');
}

static void line_of_minified(struct buf *out, struct random *r)
{
	buf_addf(out, "%c.%c=function(%c){return %c.%s?%c[%d]:\"%s\"+%c};",
		 (int)random_between(r, 97, 122), (int)random_between(r, 97, 122),
		 (int)random_between(r, 97, 122), (int)random_between(r, 97, 122), word(r),
		 (int)random_between(r, 97, 122), (int)random_between(r, 0, 99), word(r),
		 (int)random_between(r, 97, 122));
}

static void (*const makers[SAMPLE_KINDS])(struct buf *out, struct random *r) = {
	[SAMPLE_PROSE] = line_of_prose,	  [SAMPLE_C] = line_of_c,
	[SAMPLE_PYTHON] = line_of_python, [SAMPLE_JSON] = line_of_json,
	[SAMPLE_LOG] = line_of_log,	  [SAMPLE_CHINESE] = line_of_chinese,
	[SAMPLE_BASE64] = line_of_base64, [SAMPLE_MINIFIED] = line_of_minified,
};

void samples_make(void)
{
	struct random r;

	random_init(&r, 1);
	for (size_t i = 0; i < SAMPLE_KINDS; i++)
		while (pools[i].len < POOL_BYTES)
			makers[i](&pools[i], &r);
}

void sample_add_raw(struct buf *out, struct random *r, enum sample_kind kind, size_t n)
{
	const struct buf *pool = &pools[kind];

	while (n) {
		size_t part = MIN(n, pool->len / 2);
		size_t at = random_next(r) % (pool->len - part);

		buf_add(out, pool->data + at, part);
		n -= part;
	}
}

void sample_add(struct buf *out, struct random *r, enum sample_kind kind, size_t n)
{
	const struct buf *pool = &pools[kind];

	n = MIN(MAX(n, (size_t)4), pool->len / 2);
	size_t at = text_ceil(pool->data, pool->len, random_next(r) % (pool->len - n));
	size_t end = text_floor(pool->data, pool->len, at + n);

	buf_add(out, pool->data + at, end - at);
}

static void add_form(struct buf *out, const char *form, int64_t number)
{
	const char *at = strchr(form, '#');

	buf_add(out, form, (size_t)(at - form));
	buf_addf(out, "%lld%s", (long long)number, at + 1);
}

void sample_constraint(struct buf *out, struct random *r, int64_t number)
{
	static const char *const forms[] = {
		"Never push to the remote origin-#.",
		"Do not touch the files under vendor-#/.",
		"Use PostgreSQL and not MySQL for store-#.",
		"You must not change the public header api_#.h.",
		"Don't add a dependency on library-#.",
		"Only edit files below module_#/.",
		"Always run suite_# before a commit.",
		"不要修改 config_#.yaml。",
		"禁止删除 data_# 目录。",
		"必须使用 Python 3.11 编写脚本 script_#.py。",
	};

	add_form(out, forms[random_next(r) % ARRAY_SIZE(forms)], number);
}

void sample_lie(struct buf *out, struct random *r, int64_t number)
{
	static const char *const forms[] = {
		"Hard constraint recorded: never deploy service-#.",
		"The user said never to use tabs in unit-#.",
		"The user requires that you do not read folder-#.",
		"Never write to bucket-#.",
		"Do not run the job-# again.",
		"用户要求：不要使用组件#。",
	};

	add_form(out, forms[random_next(r) % ARRAY_SIZE(forms)], number);
}
