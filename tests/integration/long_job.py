"""The job of test_long.py: books whose entries are written one a round, in an order and with words that the model must know.

`sh step.sh N TOKEN [WORDS]` writes entry N as it is told, right or wrong, and says what comes next; `sh step.sh` looks and writes
nothing. Nobody corrects a wrong word, so the tree at the end says what was forgotten on the way. The words come from places that
fill a window, leave it, and have to come back by different ways:

    token       the newest result; after a reset the handoff's first action
    seal        the user's task alone: at each page's end
    page        the working memory (`notes`): told at the page's begin, wanted at its end
    chapter     the model's own summaries and handoffs; `recall` where they were lost, as in a handoff of facts alone
    volume      nothing carries it: `recall`, through the generations

The model is a scenario of the rehearsal server: what it answers is taken from the bytes that it was sent.
"""
import re

BOOKS = 40
PAGE, CHAPTER, VOLUME = 25, 75, 150
SEAL = "amber-4711"
RULE = "Never write into a book by hand."

STEP = r"""# sh step.sh: look. sh step.sh N TOKEN [WORDS]: write entry N. Without forks: it runs thousands of times.
salt=%(salt)d total=%(total)d page=%(page)d chapter=%(chapter)d volume=%(volume)d i=0
hex() { # VALUE: four digits into $hex
	hex= rest=$1
	while [ ${#hex} -lt 4 ]; do
		digits=0123456789abcdef skip=$((rest %% 16)) rest=$((rest / 16))
		while [ $skip -gt 0 ]; do digits=${digits#?} skip=$((skip - 1)); done
		hex=${digits%%"${digits#?}"}$hex
	done
}
token() { hex $((($1 * 7919 + salt) %% 65521)); }
code() { hex $((($1 * 31337 + salt * $2) %% 65521)); }
book() { b=$((($1 - 1) %% 40 + 1)) && [ $b -lt 10 ] && b=0$b; book=books/$b.txt; }
last() { while read -r line; do n=${line%%%% *}; done <$1; }
if [ $# -gt 0 ]; then
	book $1 && last $book
	[ $n = $1 ] && set -- "$@" AND ONCE MORE
	n=$1
	echo "$*" >>$book
else
	most=0
	for book in books/*; do last $book && [ $n -gt $most ] && most=$n; done
	n=$most
fi
echo "entry $n stands in its book"
while [ $i -lt %(padding)d ]; do
	i=$((i + 1)) && token $((n * 31 + i))
	echo "line $i of entry $n: the ink is dry, page and margin are as they were, $hex is its mark"
done
p=$(((n + page - 2) / page)) c=$(((n + chapter - 3) / chapter)) v=$(((n + volume - 4) / volume)) what=plain
[ $((n %% page)) -eq 2 ] && code $p 3 && echo "page $p begins, its code is P$hex: note it"
[ $((n %% chapter)) -eq 3 ] && code $c 5 && echo "chapter $c begins, its code is C$hex"
[ $((n %% volume)) -eq 4 ] && code $v 7 && echo "volume $v begins, its code is V$hex"
[ $((n %% page)) -eq 0 ] && [ $n -gt 0 ] && echo "page $((n / page)) is closed: commit it"
n=$((n + 1))
[ $((n %% page)) -eq 0 ] && what="closes page $((n / page))"
[ $((n %% chapter)) -eq 1 ] && [ $n -gt 1 ] && what="closes chapter $((n / chapter))"
[ $((n %% volume)) -eq 2 ] && [ $n -gt 2 ] && what="closes volume $((n / volume))"
token $n
[ $n -gt $total ] && echo "all entries are written" || echo "next: step $n, token $hex, chapter $c, $what"
"""


def token(salt, n):
    return f"{(n * 7919 + salt) % 65521:04x}"


def code(salt, kind, n):
    return f"{kind}{(n * 31337 + salt * {'P': 3, 'C': 5, 'V': 7}[kind]) % 65521:04x}"


def entry(salt, n):
    words = [str(n), token(salt, n)]
    if n % PAGE == 0:
        words += [SEAL, code(salt, "P", n // PAGE)]
    elif n % CHAPTER == 1 and n > 1:
        words += [code(salt, "C", n // CHAPTER)]
    elif n % VOLUME == 2 and n > 2:
        words += [code(salt, "V", n // VOLUME)]
    return " ".join(words)


def expected_books(salt, total):
    """{path: text} as it must be at the end."""
    books = {f"books/{b:02}.txt": "0\n" for b in range(1, BOOKS + 1)}
    for n in range(1, total + 1):
        books[f"books/{(n - 1) % BOOKS + 1:02}.txt"] += entry(salt, n) + "\n"
    return books


def files(salt, total, padding=6):
    values = {"salt": salt, "total": total, "padding": padding, "page": PAGE, "chapter": CHAPTER, "volume": VOLUME}
    return {"step.sh": STEP % values, **{path: "0\n" for path in expected_books(salt, 0)}}


TASK = (f"Write all entries, one after the other: `sh step.sh` says which is next. The seal is {SEAL}; each page's end wants it. {RULE}")

# ---- the model

NEXT = r"next: step (?<n>\d+), token (?<t>\w+), chapter (?<c>\d+), "
LINE = f"(?<line>{NEXT}[a-z ]+\\d*)"
SUMMARY = """<analysis>
The entries go on.
</analysis>
<summary>
1. Primary request and intent:
All entries are written, one a step, with step.sh.
2. Key technical concepts:
chapter %s has the code %s
3. Files and code sections:
step.sh writes into books/.
4. Errors and fixes:
none
5. Problem solving:
none
6. All user messages:
The task: write all entries.
7. Pending tasks:
the entries from {{n}} on
8. Current work:
step.sh, next: step {{n}}, token {{t}}
9. Optional next step:
sh step.sh {{n}} {{t}}
</summary>"""
HANDOFF = """<handoff>
<done_means>
- `sh step.sh` says: all entries are written
</done_means>
<point>
file: step.sh
command: sh step.sh
entry {{n}} is not written yet
</point>
<decisions>
- chapter %s has the code %s: its end wants it
</decisions>
<first_action>
file: step.sh
command: sh step.sh
{{line}}
</first_action>
</handoff>"""
NOTES = """<section name="current state">
next: step {{n}}, token {{t}}
</section>
<section name="files and functions">
chapter %s has the code %s
</section>"""


def shell(command):
    return {"name": "shell", "input": {"command": command}}


def rule(name, match, *calls, text=None):
    return {"name": name, "match": match, "answer": {**({"tool_calls": list(calls)} if calls else {}), **({"text": text} if text else {})}}


def carry(name, kind, text):
    """What the model writes down for itself: what comes next from the newest result, the chapter's code from the result that told
    it, else from what it wrote before."""
    told = {"any_result": r"chapter (?<cc>\d+) begins, its code is (?<code>\w+)"}
    written = {"any_text": r"chapter {{c}} has the code (?<code>\w+)"}
    here, before = {kind: True, "last_message": LINE}, {kind: True, "any_result": LINE}
    return [rule(name + ", of a result", {**here, **told}, text=text % ("{{cc}}", "{{code}}")),
            rule(name + ", of what it wrote", {**here, **written}, text=text % ("{{c}}", "{{code}}")),
            rule(name + ", of what it wrote, after another call", {**before, **written}, text=text % ("{{c}}", "{{code}}")),
            rule(name + ", without a code", before, text=text % ("?", "?"))]


def closing(kind, ways):
    """`closes KIND N`: its code from the first of `ways` that has it, else by recall, else it is lost."""
    what = NEXT + f"closes {kind} (?<k>\\d+)"
    asked = f"{kind} {{{{result.k}}}} begins, its code is \\w+"
    rules = [rule(f"{kind}: {way}", {"tool_name": "shell", "tool_result": what, **match},
                  shell("sh step.sh {{result.n}} {{result.t}} " + words)) for way, match, words in ways]
    rules.append(rule(f"{kind}: recall", {"tool_name": "shell", "tool_result": what},
                      {"name": "recall", "input": {"operation": "search", "query": asked, "regex": True}}))
    return rules


def recalled(kind):
    """A page's end wants the seal too, which is the user's word."""
    more, words = ({"task": r"The seal is (?<seal>[\w-]+)"}, "{{task.seal}} ") if kind == "page" else ({}, "")
    found = f"(?s)\\b{kind} (?<k>\\d+) begins, its code is (?<code>[A-Z]\\w+)"
    return rule(f"{kind}: recalled", {"tool_result": found, "last_message": "(?i)recall|round",
                                      "any_result": NEXT + f"closes {kind} {{{{result.k}}}}", **more},
                shell("sh step.sh {{any.n}} {{any.t}} " + words + "{{result.code}}"))


def rules():
    step = shell("sh step.sh {{result.n}} {{result.t}}")
    page = {"any_text": r"page {{result.k}} has the code (?<code>\w+)", "task": r"The seal is (?<seal>[\w-]+)"}
    return [
        *carry("summary", "is_compaction", SUMMARY), *carry("handoff", "is_handoff", HANDOFF), *carry("notes", "is_notes", NOTES),
        rule("report", {"tool_result": "all entries are written"},
             {"name": "report", "input": {"status": "done", "summary": "All entries are written."}}),
        rule("look after a cut", {"last_message": "interrupted: "}, shell("sh step.sh")),
        rule("note a page", {"tool_name": "shell", "tool_result": r"(?s)page (?<p>\d+) begins, its code is (?<code>\w+).*" + NEXT},
             {"name": "notes", "input": {"operation": "set", "field": "decisions", "lines": ["page {{result.p}} has the code {{result.code}}"]}},
             step),
        rule("commit a page", {"tool_name": "shell", "tool_result": r"(?s)page (?<p>\d+) is closed.*" + NEXT + "plain"},
             shell("git add books && git commit -q -m 'Page {{result.p}}'; sh step.sh {{result.n}} {{result.t}}")),
        rule("commit, and look", {"tool_name": "shell", "tool_result": r"(?s)page (?<p>\d+) is closed.*" + NEXT,
                                  "not": {"last_message": "nothing to commit|committed"}},
             shell("git add books && git commit -q -m 'Page {{result.p}}'; echo committed; sh step.sh")),
        *closing("page", [("the working memory and the user's words", page, "{{task.seal}} {{seen.code}}")]),
        *closing("chapter", [("what it wrote", {"any_text": r"chapter {{result.k}} has the code (?<code>\w+)"}, "{{seen.code}}"),
                             ("a result", {"any_result": r"chapter {{result.k}} begins, its code is (?<code>\w+)"}, "{{any.code}}")]),
        *closing("volume", []),
        *[recalled(kind) for kind in ("page", "chapter", "volume")],
        rule("lost", {"tool_name": "recall", "any_result": NEXT}, shell("sh step.sh {{any.n}} {{any.t}} LOST")),
        rule("next", {"tool_name": "shell", "tool_result": NEXT + "plain"}, step),
        rule("the successor goes on", {"turn": 0, "task": r"First action\s+- " + NEXT + "plain"},
             shell("sh step.sh {{task.n}} {{task.t}}"), text="The handoff says that step {{task.n}} is next."),
        rule("look", {"has_tools": True}, shell("sh step.sh")),
    ]


def faults(seed, share):
    """What a provider does wrong, each now and then."""
    kinds = [{"status": 429, "headers": {"retry-after": "0"}}, {"status": 500}, {"status": 529}, {"cut": 6}, {"reset": 3}, {"reset": True},
             {"malformed": 3}, {"stall": 4}, {"error_event": {"after": 2, "type": "overloaded_error", "message": "Overloaded"}}]
    return [{"name": "fault " + re.sub(r"\W+", " ", str(kind)).strip(), "match": {}, "probability": share / len(kinds),
             "seed": seed + i, "fault": kind} for i, kind in enumerate(kinds)]
