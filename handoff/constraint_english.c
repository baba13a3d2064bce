/*
 * constraint_english.c - the English rules: two tables of word patterns and their matcher.
 *
 * A pattern is a row of elements, each against one word of the sentence:
 *   a|b|c   one of these words      -ing    a word with this ending    #    a number
 *   ^^      nothing: the sentence begins here (after "please" and its like)
 *   ^       nothing: a clause begins here (after a mark, or after words such as "please", "and")
 *   $       nothing: the clause ends here
 *   *       up to four words within the clause
 *   **      up to twelve words within the clause
 * First the exceptions are struck out ("I have never", "don't need"): their words match nothing any
 * more. Then one match of the second table makes the sentence a constraint. Patterns are wide on
 * purpose: a doubtful sentence is a constraint. The third table says what else a sentence may be: one
 * that is neither is unclear.
 */
#include "handoff/constraints.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

#define TOKENS_MAX 400 /* SENTENCE_MAX bytes have no more that matter */

struct token {
	const char *s; /* NULL: a mark that ends a clause */
	size_t n;
	bool struck;
};

struct tokens {
	struct token list[TOKENS_MAX];
	size_t n;
};

static const char *const exceptions[] = {
	"don't|dont|not|needn't need|have|has to",
	"needn't",
	"no need",
	"don't|dont|not know|think|understand|see|remember|worry|mind|care|get|believe|seem|exist",
	/* Without a subject before it this is an order: "Do not run the migrations." */
	"does|did|would|could not work|compile|build|run",
	"-s|it|they|i|we|you|that|which|still|and|but don't|dont work|compile|build|run",
	"-s|it|they|i|we|you|that|which|still|and|but do not work|compile|build|run",
	"have|has|had|i've|we've|i'd|i|it|they've never",
	"never mind",
	"never -ed|-s|saw|seen|was|were|came|got|had",
	"must|should|may|might|could have "
	"been|-ed|come|gone|got|had|happened|broken|run|forgotten|missed",
	"i|he|she|they|someone|somebody must be",
	"should be fine|ok|okay|easy|simple|possible|enough|obvious",
	"should i|we",
	"i|we|they|you have|had to go|leave|admit|say",
	"had to",
	"no "
	"problem|idea|worries|hurry|rush|longer|one|wonder|matter|thanks|reason|progress|luck|"
	"difference",
	"feel free",
	"only happens|occurs|fails|appears|crashes|shows|when|if|once|yesterday|today|recently",
	"it|this|that|which|he|she|only only",
	"always -s|-ed|been|was|were|had",
	"keep|keeps|kept -ing",
	"keep going|up",
	"rather slow|fast|large|small|big|long|short|odd|strange|easy|hard|difficult",
	"go on|ahead|back|over|through",
	"take a|your look|time",
	"take|took|takes # seconds|minutes|hours|ms",
	"leave|left a comment|message|note",
	"in the first place",
	"at least i|it|we|once|now",
	"as required",
	"most of",
	"use case|cases",
	"in use",
	"the|a|this|that|my|our|your build|code|program|test|set|port|make|answer|document|start",
	"nothing happens|happened|works|changes|changed|shows|appears|special|new|wrong",
	"no use",
	"all tests|checks are|have pass|passed|passing|green|failing|broken|failed",
	"all tests|checks|of pass|fail|them|this",
};

static const char *const rules[] = {
	/* prohibitions */
	"^ do not",
	"^ not",
	"don't|dont|didn't|doesn't "
	"ever|touch|change|use|add|modify|edit|delete|remove|push|commit|merge|rename|alter|break|"
	"introduce|write|create|install|upgrade|update|downgrade|refactor|reformat|move|run|call|"
	"import|include|rely|mix|mess|go|let|make|put|store|log|print|send|expose|skip|disable|"
	"ignore|forget|assume|guess|invent|leave|open|start|stop|overwrite|publish|deploy|release|"
	"bother|try|return|allow|accept|want|like|do|force|rewrite|rebase|bump|pull|drop|share|"
	"hardcode|copy|comment|generate|translate",
	"^ don't|dont",
	"do not",
	"i|we|you|team|they don't|do|never "
	"use|want|allow|accept|like|support|do|ship|write|touch|merge|commit|deploy|have|not",
	"^ never",
	"never",
	"^ "
	"avoid|refrain|abstain|stop|quit|drop|ditch|exclude|omit|skip|ignore|forbid|ban|beware|"
	"spare",
	"steer|stay|keep clear|away|off|out",
	"dropped|drop|ended|end support",
	"dropped|drop * support",
	"can|may rely|assume|count on|that",
	"carved|set|cast|written in stone",
	"please not",
	"they|secrets|these|those don't|dont",
	"refrain|abstain from",
	"avoid",
	"^ no|neither|none|nothing|nobody",
	"no-one|nothing|nobody|none|no ** may|must|should|shall|can|is|are|gets|get "
	"to|be|see|touch|change|modified|changed|touched|merged|allowed|committed|pushed|deployed",
	"^ no one",
	"nothing|nobody gets|goes|leaves|but|except|else|outside|beyond|besides",
	"must|should|shall|may|can|could|will|would|ought|is|are|need|needs|to not",
	"mustn't|shouldn't|shan't|oughtn't|mayn't|won't",
	"cannot|can't "
	"be|exceed|go|have|use|depend|rely|take|contain|change|break|touch|grow|become|afford",
	"we|you|it|they|this|that|which|there cannot|can't ** "
	"be|use|change|break|depend|afford|exceed",
	"but|and|or not|never|no",
	"^ but|and not",
	"not in|on|to|the|for|at|from|a|an|with|by|as $",
	"^ under|in|on no circumstances|account|case|condition|way",
	"whatever you do",
	"hands|keep|stay off|away|out|clear",
	"off-limits|no-go|taboo|banned|verboten|unacceptable|untouchable|sacrosanct|frozen|read-"
	"only|readonly|deprecated",
	"off limits|the",
	"out of scope|bounds|question",
	"not|isn't|aren't|never "
	"allowed|permitted|acceptable|an|option|welcome|wanted|desired|negotiable|okay|ok|up|"
	"enough|in",
	"forbid|forbids|forbidden|prohibit|prohibits|prohibited|disallow|disallows|disallowed",
	"without my|our|asking|approval|permission|consent|telling|review|-ing",
	"^ without",
	"no|not|never|nothing "
	"more|less|other|later|earlier|longer|bigger|larger|higher|lower|than|else",
	"no new|external|extra|additional|third-party|global|other|further|breaking|more",
	"i|we|he|she|boss|client|customer|team "
	"hate|hates|dislike|dislikes|object|refuse|insist|insists|demand|demands|want|wants|prefer|"
	"prefers|expect|expects|require|requires",
	/* obligations */
	"must",
	"shall",
	"should|ought",
	"has|have|needs|need to",
	"needs|need|require|requires",
	"is|are|be to be",
	"is|are supposed|meant|expected|required|obliged|bound to",
	"^ always",
	"should|must|please|and|to|we|you|but|then always",
	"always",
	"make|be sure|certain",
	"ensure|guarantee",
	"mandatory|obligatory|compulsory|required|requirement|requirements|constraint|constraints|"
	"rule|rules|convention|conventions|guideline|guidelines|policy|policies|standard|"
	"restriction|restrictions|non-negotiable|prerequisite|principle|principles",
	"important|crucial|essential|vital|imperative|critical that|to|is|for",
	"^ important|crucial|essential|note|remember|caution|attention|warning|mind|bear|careful",
	"at all costs",
	"by all means",
	"no matter what|how|which",
	"unless",
	"except|apart for|from|in|when|where|that|the",
	"only "
	"if|when|after|in|on|for|from|to|with|within|via|using|through|by|the|one|change|touch|"
	"edit|modify|use|add|work|do|allow|allowed|support|read|fix|what|these|those|this",
	"^ only|just|solely|exclusively|strictly",
	"may|must|should|can|shall only",
	"only|exclusively|alone $",
	"exclusively|solely|strictly",
	"^ limit|restrict|confine|cap|constrain|bound",
	"limit|limited|restrict|restricted|confine|confined|scope|scoped|capped "
	"to|at|yourself|changes|it",
	"leave|leaves ** alone|be|as|untouched|in|out|unchanged|intact|it|them|that|those|there",
	"untouched|unchanged|unmodified|intact|as-is|verbatim|backwards|backward-compatible|"
	"backwards-compatible",
	"as is|it|they is|are|stands",
	"compatible|compatibility",
	"keep|preserve|retain|maintain",
	"stay|stays|remain|remains",
	"^ ask|consult|check|warn|tell|notify|wait",
	"ask|check|consult|tell|clear|confirm ** first|before|with",
	"before you|committing|merging|pushing|-ing",
	"first , then",
	"first $",
	/* limits */
	"at most|least|max|maximum|minimum",
	"up to #",
	"no|not more|less|fewer|longer than",
	"max|maximum|minimum|min|limit",
	"below|under|within|above|over|beyond|exceed|exceeds #",
	"less|fewer|more|smaller|larger than",
	"one|two|three|# ** per|each|every",
	"within|inside|outside|outside-of ** only",
	/* choices */
	"^ "
	"use|take|choose|pick|adopt|employ|apply|go|switch|migrate|stick|stay|rely|base|target|"
	"name|call|put|place|store|format|indent|adhere|conform|follow|respect|obey|observe|honor|"
	"honour|comply|prefer|favor|favour|respond|answer|reply|write|document|log|listen|bind|"
	"deploy|host|serve|stay|treat|assume|pin|lock|set|disable|enable|mark|include|wrap|quote|"
	"sort|sign|prefix|suffix|start|begin|end|replace|swap|aim|opt|settle|let's|lets|let|"
	"default|support",
	"use|using ** instead|not|rather|over|only|throughout|everywhere|consistently|for",
	"to|you|we'll|we|i'll|let's|should|will|could|would|can|please|and|but|then|so|just|always|"
	"also|must|that|rather|want use",
	"i'll|we'll|you'll|let's|lets|let "
	"go|use|take|do|stick|stay|keep|write|build|make|choose|pick|have|avoid|not|us|be",
	"we|i|team|everyone|everybody|project|code|repo|company "
	"use|go|are|went|run|follow|target|support|stick|chose|decided|settled|agreed|standardized|"
	"standardised|prefer|want|need|ship|write|deploy|keep|stay",
	"we're|i'm on|using|stuck|bound|limited|going|targeting|sticking",
	"i|we want|need|expect|insist|require|prefer|would|decided|like",
	"i'd|we'd like|prefer|rather|want|love|appreciate|suggest|recommend",
	"would|might be good|nice|great|better|best|preferable|preferred|ideal",
	"rather than|you|not|use",
	"prefer|prefers|preferred|preferably|preference|favor|favour|ideally",
	"instead",
	"in place|favor|favour|lieu of",
	"over -s|inheritance",
	"go|going|went with|for",
	"^ as agreed|discussed|decided|before|usual|always",
	"agreed|decided on|to|that|we",
	"stick|adhere|conform|conforms|comply|complies|according|accordance to|with",
	"follow|follows|following|obey|observes|respects|respect",
	"style|styleguide|snake_case|camelcase|pascalcase|kebab-case|upper_case|indentation|"
	"indented|tabs|semicolons|utf-8|utc|ascii|naming|prettier|black|eslint|clang-format|"
	"monospace|iso",
	"line length|width|endings",
	"^ all|every|each|any ** "
	"are|is|in|have|has|get|gets|go|goes|use|uses|stay|live|lives|belong|belongs|must|should|"
	"need|needs|starts|start|end|ends|returns|return|take|takes",
	"write|implement|build|create|make|do|develop|code|port|rewrite|convert|translate|start|"
	"set|program|put|answer|respond|reply|speak|document ** in|with|on|using|as|via",
	"written|implemented|built|coded|done|named|called|placed|stored|formatted|sorted|signed|"
	"documented|logged ** in|with|on|using|as|after|by|under|at",
	"careful|carefully|mindful",
	"by|as default",
	"from now on",
	"for now|all|every",
	"forget about|what|it|the",
	"^ listen|bind|run|deploy|serve on|to|at",
	"is|are|it's|that's mandatory|taken|final|fixed|set|settled|sacred|deliberate|intentional",
	"not # but",
	"not just|only|even",
	"like|as ** existing|rest|other|others|before|current",
	"consistent|consistently|consistency|idiomatic",
	"same ** as",
};

/* What a sentence is that is none: a task, a report, an opinion, an answer. */
static const char *const others[] = {
	/* tasks: the first word of the sentence */
	"^^ fix|repair|add|implement|create|build|make|write|find|look|check",
	"^^ investigate|explain|describe|show|tell|give|summarise|summarize|list",
	"^^ compare|rename|refactor|remove|delete|update|upgrade|run|rerun|test",
	"^^ debug|profile|measure|read|open|continue|proceed|go|try|review|analyse",
	"^^ analyze|search|figure|help|move|extract|port|convert|translate|merge",
	"^^ rebase|commit|push|start|finish|complete|prepare|draft|generate",
	"^^ document|clean|optimise|optimize|speed|improve|reproduce|print|revert",
	"^^ undo|see|get|install|set|change|replace|split|put|think|propose|suggest",
	"^^ estimate|verify|confirm|count|collect|download|connect|inspect|trace",
	"^^ rewrite|extend|handle|wire|hook|parse|render|display|sort|group|resolve",
	"^^ address|do|work|simplify|reduce|introduce|design|plan|expose|cover",
	"^^ track|watch|benchmark|integrate|migrate|bring|turn|send|load|save",
	"^^ report",
	/* answers */
	"^^ "
	"thanks|thank|yes|yep|yeah|no|nope|ok|okay|sure|great|good|nice|perfect|cool|awesome|hello|"
	"hi|hey|sorry|done|lgtm|wow|fine|correct|exactly|excellent|bravo|here|same|i|i'm|i've|i'd|"
	"me|my|he|she|his|her|they|maybe|perhaps|probably|apparently|strangely|interesting|"
	"sometimes|yesterday|today|recently|lately|meanwhile|earlier|last|when|since|after|whether|"
	"what|which|why|how|where|who",
	/* reports */
	"was|were|did|had|been|became|came|went|got|took|ran|saw|said|told|wrote|found|broke|lost|"
	"knew|thought|made|gave|sent|spent|built|began|grew|fell|hung|ended",
	"didn't|wasn't|weren't|hadn't|hasn't|haven't|doesn't|isn't|aren't|couldn't|wouldn't",
	"i|we|it|he|she|they|you|somebody|someone -ed",
	"the|a|this|that|our|my * -ed",
	"seems|looks|appears|sounds|feels|happens|crashes|fails|hangs|breaks|complains|complain|"
	"throws|takes|tells|shows|displays|says|works|stops|dies|spins|leaks|loads|mentions|grows|"
	"drops|gets|returns|prints|reports",
	"bug|slow|slower|fast|faster|flaky|broken|leak|leaks|deadlock|weird|strange|odd|annoying|"
	"trouble|problem|problems|issue|race|stuck|wrong|timeout|traceback|stacktrace|regression|"
	"urgent|love|happy|error|exception|crash",
	"yesterday|today|recently|lately|ago|already|yet|currently|meanwhile|anymore|week|month|"
	"monday|morning|night",
	"it|that|this is",
	"it's|that's|there's|there",
	"i|we think|believe|guess|suppose|know|see|wonder|am|have|find|noticed|looked",
	"maybe|perhaps|probably|apparently|obviously|sure|guess|idea|unclear",
	"has|have -ed|been|become|come|gone|grown",
	"is|are -ing",
};

/* Words that stand before a clause's verb and are not its subject. */
static const char *const fillers[] = {
	"please",	"and",	       "also",	   "but",     "so",	 "then",
	"just",		"ok",	       "okay",	   "right",   "well",	 "now",
	"kindly",	"again",       "first",	   "finally", "really",	 "thus",
	"hence",	"therefore",   "or",	   "because", "that",	 "simply",
	"absolutely",	"definitely",  "hey",	   "hi",      "yes",	 "no",
	"sure",		"todo",	       "nb",	   "ps",      "btw",	 "important",
	"additionally", "furthermore", "moreover", "however", "instead", "otherwise",
	"oh",		"next",	       "pls",	   "plz"};

/* ---- words ---- */

static bool is_word_char(unsigned char c)
{
	return isalnum(c) || c == '_' || c == '\'' || c == '/' || c == '.' || c == '-' ||
	       c == '+' || c == '@' || c == '~' || c == '<' || c == '>';
}

static void add_mark(struct tokens *t)
{
	if (t->n < TOKENS_MAX && t->n && t->list[t->n - 1].s)
		t->list[t->n++] = (struct token){.s = NULL};
}

static void add_word(struct tokens *t, const char *s, size_t n)
{
	bool mark = false;

	while (n && strchr("./-", s[n - 1])) { /* the full stop of the sentence, a dash */
		mark = true;
		n--;
	}
	while (n && strchr("-'~<>+", *s) && !isdigit((unsigned char)s[n - 1])) {
		s++;
		n--;
	}
	if (n && t->n < TOKENS_MAX)
		t->list[t->n++] = (struct token){.s = s, .n = n};
	if (mark)
		add_mark(t);
}

/* Chinese between English words is no mark: "用 React" is one clause. It is one word of no name. */
static void tokenize(const char *s, size_t n, struct tokens *ret)
{
	ret->n = 0;
	for (size_t i = 0; i < n && ret->n < TOKENS_MAX;) {
		size_t k = i;

		while (k < n && is_word_char((unsigned char)s[k]))
			k++;
		if (k > i) {
			add_word(ret, s + i, k - i);
			i = k;
			continue;
		}
		if (!isspace((unsigned char)s[i]) && s[i] != '*' && s[i] != '#')
			add_mark(ret);
		i++;
	}
}

static bool word_ends(const struct token *t, const char *suffix, size_t n)
{
	return t->n > n + 1 && !memcmp(t->s + t->n - n, suffix, n);
}

static bool is_number(const struct token *t)
{
	return t->n && isdigit((unsigned char)t->s[0]);
}

/* One of the alternatives of an element. */
static bool word_is(const struct token *t, const char *element, size_t n)
{
	const char *end = element + n, *next;

	for (; element < end; element = next + 1) {
		size_t len;

		for (next = element; next < end && *next != '|'; next++)
			;
		len = (size_t)(next - element);
		if (*element == '-' && len > 1) {
			if (word_ends(t, element + 1, len - 1))
				return true;
		} else if (*element == '#' && len == 1) {
			if (is_number(t))
				return true;
		} else if (len == t->n && *element == *t->s && !memcmp(element, t->s, len)) {
			return true;
		}
	}
	return false;
}

static bool is_filler(const struct token *t)
{
	for (size_t i = 0; i < ARRAY_SIZE(fillers); i++)
		if (t->n == strlen(fillers[i]) && !memcmp(t->s, fillers[i], t->n))
			return true;
	return is_number(t) && t->n <= 2; /* of a list */
}

static bool clause_begins(const struct tokens *t, size_t i)
{
	while (i > 0 && t->list[i - 1].s && is_filler(&t->list[i - 1]))
		i--;
	return i == 0 || !t->list[i - 1].s;
}

static bool sentence_begins(const struct tokens *t, size_t i)
{
	while (i > 0 && (!t->list[i - 1].s || is_filler(&t->list[i - 1])))
		i--;
	return i == 0;
}

/* ---- patterns ---- */

static size_t match(const struct tokens *t, size_t i, const char *pattern);

static size_t match_gap(const struct tokens *t, size_t i, size_t most, const char *rest)
{
	for (size_t k = 0; k <= most; k++) {
		size_t end = match(t, i + k, rest);

		if (end)
			return end;
		if (i + k >= t->n || !t->list[i + k].s)
			return 0;
	}
	return 0;
}

/* The index behind the match plus one, 0 if there is none. */
static size_t match(const struct tokens *t, size_t i, const char *pattern)
{
	size_t n = strcspn(pattern, " ");
	const char *rest = pattern + n + (pattern[n] == ' ');

	if (!n)
		return i + 1;
	if (n == 1 && *pattern == '^')
		return clause_begins(t, i) ? match(t, i, rest) : 0;
	if (n == 2 && *pattern == '^')
		return sentence_begins(t, i) ? match(t, i, rest) : 0;
	if (n == 1 && *pattern == '$')
		return i >= t->n || !t->list[i].s ? match(t, i, rest) : 0;
	if (*pattern == '*')
		return match_gap(t, i, n == 1 ? 4 : 12, rest);
	if (i >= t->n)
		return 0;
	if (n == 1 && *pattern == ',')
		return t->list[i].s ? 0 : match(t, i + 1, rest);
	if (!t->list[i].s || t->list[i].struck || !word_is(&t->list[i], pattern, n))
		return 0;
	return match(t, i + 1, rest);
}

/* Most patterns can be passed over by the first letter and the length of their first word: without this
 * a pasted megabyte takes half a minute. Made once from the tables, by the only thread. */
struct filter {
	bool any;	      /* begins with something else than letters */
	uint32_t lengths[26]; /* by first letter, a bit for each length */
};

#define FILTERS_MAX 256

struct table {
	const char *const *patterns;
	size_t count;
	bool ready;
	struct filter filters[FILTERS_MAX];
};

static void filter_add(struct filter *f, const char *word, size_t n)
{
	if (*word < 'a' || *word > 'z' || n > 31)
		f->any = true;
	else
		f->lengths[*word - 'a'] |= UINT32_C(1) << n;
}

static void filter_make(struct filter *f, const char *pattern)
{
	size_t n;

	while (*pattern == '^' || *pattern == ' ')
		pattern++;
	n = strcspn(pattern, " ");
	while (n) {
		size_t len = strcspn(pattern, "| ");

		filter_add(f, pattern, len);
		pattern += len + (len < n);
		n -= len + (len < n);
	}
}

static void table_prepare(struct table *table)
{
	_Static_assert(ARRAY_SIZE(rules) <= FILTERS_MAX && ARRAY_SIZE(others) <= FILTERS_MAX &&
			       ARRAY_SIZE(exceptions) <= FILTERS_MAX,
		       "FILTERS_MAX is too small");
	for (size_t p = 0; !table->ready && p < table->count; p++)
		filter_make(&table->filters[p], table->patterns[p]);
	table->ready = true;
}

static bool may_begin(const struct filter *f, const struct token *t)
{
	if (f->any)
		return true;
	return t->s && *t->s >= 'a' && *t->s <= 'z' && t->n <= 31 &&
	       (f->lengths[*t->s - 'a'] >> t->n & 1);
}

/* The index behind a match of pattern `p` at `i` plus one, 0 if there is none. */
static size_t table_match(const struct table *table, size_t p, const struct tokens *t, size_t i)
{
	return may_begin(&table->filters[p], &t->list[i]) ? match(t, i, table->patterns[p]) : 0;
}

static struct table exception_table = {exceptions, ARRAY_SIZE(exceptions), .ready = false};
static struct table rule_table = {rules, ARRAY_SIZE(rules), .ready = false};
static struct table other_table = {others, ARRAY_SIZE(others), .ready = false};

/* Returns whether an exception was there. */
static bool strike(struct tokens *t)
{
	bool found = false;

	table_prepare(&exception_table);
	for (size_t p = 0; p < exception_table.count; p++) {
		for (size_t i = 0; i < t->n; i++) {
			size_t end = table_match(&exception_table, p, t, i);

			for (size_t k = i; end && k < end - 1; k++)
				t->list[k].struck = found = true;
		}
	}
	return found;
}

static bool any_matches(const struct tokens *t, struct table *table)
{
	table_prepare(table);
	for (size_t p = 0; p < table->count; p++)
		for (size_t i = 0; i < t->n; i++)
			if (table_match(table, p, t, i))
				return true;
	return false;
}

bool constraint_in_english(const char *bare, size_t n)
{
	struct tokens *t = mem_alloc(sizeof(*t));
	bool found;

	tokenize(bare, n, t);
	strike(t);
	found = any_matches(t, &rule_table);
	free(t);
	return found;
}

static size_t count_words(const struct tokens *t)
{
	size_t words = 0;

	for (size_t i = 0; i < t->n; i++)
		words += t->list[i].s != NULL;
	return words;
}

bool constraint_unclear_english(const char *bare, size_t n)
{
	struct tokens *t = mem_alloc(sizeof(*t));
	bool unclear;

	tokenize(bare, n, t);
	/* What an exception names is told by it: "you don't need to". */
	unclear = count_words(t) > 1 && !strike(t) && !any_matches(t, &other_table);
	free(t);
	return unclear;
}
