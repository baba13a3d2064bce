/*
 * document_vague.c - is something said at all? (R4)
 *
 * A list of whole phrases would be passed by the first one that is not in it. So the question is turned round: words that
 * fit any task ("continue", "the", "remaining", "tests") are taken away, and what is concrete is what is left. Chinese has no
 * blanks between words; there the longest of the phrases that fits is taken away again and again.
 */
#include "handoff/document_vague.h"

#include <ctype.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

/* Each between blanks. */
static const char empty_words[] =
	" a above according accordingly action actions address again all also an and any"
	" anything approach as at be before begin below bug bugs by can carry change changes"
	" check code command complete completed completing completion context continue"
	" continued continues continuing current do does doing done ensure errors etc"
	" everything execute fail failing failure failures false finalise finalize find finish"
	" finished finishing first fix fixing following for forward from further get go going"
	" good handle have how i if implement implementation implementing in into is issue"
	" issues it item items job just keep last left let like list listed look make me more"
	" move n/a na necessary need needed needs next no none nothing now of off ok okay on"
	" one onto open or other our out outstanding part pass pending pick plan planned"
	" please possible previous previously problem problems proceed project reach refer"
	" remain remainder remaining required rest result resume resuming review run same see"
	" should so some something start started state step steps still stopped stuff success"
	" successfully sure task tasks tbd test testing tests that the their them then there"
	" these they thing things this those to todo to-do true try unfinished unknown until"
	" up us verify was we were what whatever when where which will with work working works"
	" yet you your"
	" ";

/* Longest first where one begins another. */
static const char *const empty_chinese[] = {
	"\xe4\xb8\x8b\xe4\xb8\x80\xe6\xad\xa5", /* xia yi bu, the next step */
	"\xe6\x9c\xaa\xe5\xae\x8c\xe6\x88\x90", /* wei wancheng, not finished */
	"\xe6\x8c\x89\xe8\xae\xa1\xe5\x88\x92", /* an jihua, by the plan */
	"\xe8\xa7\x81\xe4\xb8\x8a\xe6\x96\x87", /* jian shangwen, see the text above */
	"\xe7\xbb\xa7\xe7\xbb\xad",		/* jixu, continue */
	"\xe6\x8e\xa5\xe7\x9d\x80",		/* jiezhe, go on */
	"\xe5\x89\xa9\xe4\xbd\x99",		/* shengyu, remaining */
	"\xe5\x89\xa9\xe4\xb8\x8b",		/* shengxia, left */
	"\xe4\xbb\xbb\xe5\x8a\xa1",		/* renwu, task */
	"\xe5\xb7\xa5\xe4\xbd\x9c",		/* gongzuo, work */
	"\xe5\xae\x8c\xe6\x88\x90",		/* wancheng, finish */
	"\xe4\xb8\x8b\xe5\x8e\xbb",		/* xiaqu, on */
	"\xe8\xbf\x9b\xe8\xa1\x8c",		/* jinxing, carry out */
	"\xe5\xa4\x84\xe7\x90\x86",		/* chuli, handle */
	"\xe8\xa7\x81\xe4\xb8\x8a",		/* jian shang, see above */
	"\xe5\x90\x8c\xe4\xb8\x8a",		/* tong shang, the same as above */
	"\xe5\xa6\x82\xe4\xb8\x8a",		/* ru shang, as above */
	"\xe4\xb8\x8a\xe6\x96\x87",		/* shangwen, the text above */
	"\xe4\xb8\x8a\xe8\xbf\xb0",		/* shangshu, said above */
	"\xe6\x89\x80\xe8\xbf\xb0",		/* suoshu, said */
	"\xe5\x85\xb6\xe4\xbd\x99",		/* qiyu, the rest */
	"\xe5\x85\xb6\xe4\xbb\x96",		/* qita, others */
	"\xe4\xbd\x99\xe4\xb8\x8b",		/* yuxia, left over */
	"\xe4\xb9\x8b\xe5\x89\x8d",		/* zhiqian, before */
	"\xe5\x89\x8d\xe9\x9d\xa2",		/* qianmian, above */
	"\xe5\xbd\x93\xe5\x89\x8d",		/* dangqian, present */
	"\xe8\xae\xa1\xe5\x88\x92",		/* jihua, plan */
	"\xe7\x84\xb6\xe5\x90\x8e",		/* ranhou, then */
	"\xe5\xbc\x80\xe5\xa7\x8b",		/* kaishi, begin */
	"\xe6\xad\xa5\xe9\xaa\xa4",		/* buzhou, step */
	"\xe4\xba\x8b\xe6\x83\x85",		/* shiqing, things */
	"\xe6\x89\x80\xe6\x9c\x89",		/* suoyou, all */
	"\xe5\x85\xa8\xe9\x83\xa8",		/* quanbu, all */
	"\xe4\xb8\x80\xe5\x88\x87",		/* yiqie, everything */
	"\xe4\xbf\xae\xe5\xa4\x8d",		/* xiufu, repair */
	"\xe9\x97\xae\xe9\xa2\x98",		/* wenti, problem */
	"\xe6\xb5\x8b\xe8\xaf\x95",		/* ceshi, test */
	"\xe6\xa3\x80\xe6\x9f\xa5",		/* jiancha, check */
	"\xe4\xbb\xa3\xe7\xa0\x81",		/* daima, code */
	"\xe5\xae\x9e\xe7\x8e\xb0",		/* shixian, implement */
	"\xe5\xbe\x85\xe5\xae\x9a",		/* daiding, to be decided */
	"\xe5\x90\x8e\xe7\xbb\xad",		/* houxu, what follows */
	"\xe8\xbf\x90\xe8\xa1\x8c",		/* yunxing, run */
	"\xe7\x9a\x84",				/* de */
	"\xe5\x81\x9a",				/* zuo, do */
	"\xe6\x97\xa0",				/* wu, none */
	"\xe5\x90\xa7",				/* ba */
	"\xe4\xba\x86",				/* le */
	"\xe6\x8a\x8a",				/* ba, taking */
	"\xe5\x8e\xbb",				/* qu, go */
	"\xe5\x86\x8d",				/* zai, again */
	"\xe5\xb9\xb6",				/* bing, and */
	"\xe8\xaf\xb7",				/* qing, please */
};

/* U+3000 to U+303F and U+FF00 to U+FF20 (full-width signs), and general punctuation: quotes, dashes. */
static size_t sign_len(const char *s)
{
	const unsigned char *u = (const unsigned char *)s;

	if (u[0] == 0xe3 && u[1] == 0x80 && u[2])
		return 3;
	if (u[0] == 0xef && u[1] == 0xbc && u[2] && u[2] <= 0xa0)
		return 3;
	if (u[0] == 0xe2 && u[1] == 0x80 && u[2])
		return 3;
	return 0;
}

static size_t chinese_len(const char *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(empty_chinese); i++) {
		size_t n = strlen(empty_chinese[i]);
		if (strncmp(s, empty_chinese[i], n) == 0)
			return n;
	}
	return 0;
}

static bool empty_word(const char *word, size_t n)
{
	bool number = true;

	for (size_t i = 0; i < n; i++)
		number = number && isdigit((unsigned char)word[i]);
	if (number)
		return true;
	AUTO_FREE char *between = mem_printf(" %.*s ", (int)n, word);
	return text_find_nocase(empty_words, sizeof(empty_words) - 1, between) != NULL;
}

static bool joins_words(char c)
{
	return c == '\'' || c == '/' || c == '-';
}

bool vague_text(const char *text)
{
	while (*text) {
		size_t n = 0;
		if (isascii((unsigned char)*text) && !isalnum((unsigned char)*text)) {
			text++;
			continue;
		}
		if ((n = sign_len(text)) > 0 || (n = chinese_len(text)) > 0) {
			text += n;
			continue;
		}
		/* "don't" and "n/a" are words; a sign at the end is none of it. */
		while (isalnum((unsigned char)text[n]) ||
		       (n && joins_words(text[n]) && isalnum((unsigned char)text[n + 1])))
			n++;
		if (!n || !empty_word(text, n))
			return false;
		text += n;
	}
	return true;
}

/* They point at something else instead of saying it. */
bool vague_evades(const char *text)
{
	static const char *const words[] = {
		"above",
		"carry",
		"continue",
		"continuing",
		"going",
		"keep",
		"left",
		"next",
		"pick",
		"planned",
		"previous",
		"proceed",
		"remainder",
		"rest",
		"same",
		"remaining",
		"plan",
		"resume",
		"tbd",
		"todo",
		"unfinished",
		"\xe7\xbb\xa7\xe7\xbb\xad", /* the same in Chinese, from the list above */
		"\xe6\x8e\xa5\xe7\x9d\x80",
		"\xe5\x89\xa9\xe4\xbd\x99",
		"\xe5\x89\xa9\xe4\xb8\x8b",
		"\xe5\x85\xb6\xe4\xbd\x99",
		"\xe4\xb8\x8b\xe4\xb8\x80\xe6\xad\xa5",
		"\xe8\xae\xa1\xe5\x88\x92",
		"\xe5\x90\x8e\xe7\xbb\xad",
	};
	size_t n = strlen(text);

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (text_find_nocase(text, n, words[i]))
			return true;
	return false;
}

/* ---- commands ---- */

static bool idle_program(const char *s, size_t n)
{
	static const char *const idle[] = {"true",   "false", ":",	"exit",	  "echo",
					   "printf", "sleep", "pwd",	"cd",	  "date",
					   "wait",   "clear", "whoami", "return", "done"};

	for (size_t i = 0; i < ARRAY_SIZE(idle); i++)
		if (strlen(idle[i]) == n && memcmp(idle[i], s, n) == 0)
			return true;
	return false;
}

/* What a program prints into a file does something. */
static bool idle_part(const char *s, size_t n)
{
	size_t word = 0;

	while (n && strchr(" \t\n(){}", *s))
		s++, n--;
	if (!n || *s == '#')
		return true;
	if (memchr(s, '>', n))
		return false;
	while (word < n && !strchr(" \t\n(){}", s[word]))
		word++;
	return idle_program(s, word);
}

bool vague_command(const char *command)
{
	while (*command) {
		size_t n = strcspn(command, ";&|\n");
		if (!idle_part(command, n))
			return false;
		command += n + strspn(command + n, ";&|\n");
	}
	return true;
}

/* ---- what a text names ---- */

static bool name_char(char c)
{
	return isascii((unsigned char)c) && (isalnum((unsigned char)c) || strchr("_./:+-~", c)) &&
	       c;
}

/* A word that is no word of a language: a path, a file name, a name with an underscore or CamelCase, a call. */
static bool looks_named(const char *s, size_t n, char after)
{
	if (n < 2)
		return false;
	if (after == '(' || memchr(s, '/', n) || memchr(s, '_', n) || memmem(s, n, "::", 2))
		return true;
	for (size_t i = 1; i + 1 < n; i++) {
		if (s[i] == '.' && isalnum((unsigned char)s[i + 1]) &&
		    !isdigit((unsigned char)s[i - 1]))
			return true;
		if (islower((unsigned char)s[i - 1]) && isupper((unsigned char)s[i]))
			return true;
	}
	return false;
}

bool vague_next_target(const char **at, const char **ret, size_t *ret_n)
{
	const char *s = *at;

	while (*s) {
		size_t n = 0;
		if (*s == '`') {
			n = strcspn(s + 1, "`\n");
			*ret = s + 1;
			*ret_n = n;
			*at = s + 1 + n + (s[1 + n] == '`');
			if (n && s[1 + n] == '`')
				return true;
			s = *at;
			continue;
		}
		while (name_char(s[n]))
			n++;
		*ret = s;
		*ret_n = n;
		*at = s + MAX(n, (size_t)1);
		while (*ret_n && strchr(".:/-", s[*ret_n - 1]))
			--*ret_n;
		if (looks_named(s, *ret_n, s[n]) && !empty_word(s, *ret_n))
			return true;
		s = *at;
	}
	return false;
}

bool vague_stands_in(const char *text, const char *target, size_t n)
{
	size_t len = text ? strlen(text) : 0;
	const char *end = len ? text + len : text, *s = text;

	while (n && len && (s = memmem(s, (size_t)(end - s), target, n)) != NULL) {
		bool before = s == text || !(isalnum((unsigned char)s[-1]) || s[-1] == '_') ||
			      !isalnum((unsigned char)*target);
		bool after = !(isalnum((unsigned char)s[n]) || s[n] == '_') ||
			     !isalnum((unsigned char)target[n - 1]);
		if (before && after)
			return true;
		s++;
	}
	return false;
}
