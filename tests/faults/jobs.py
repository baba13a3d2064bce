"""The jobs that faults are put into: small, with everything in them that a run writes, and told by the state of the
worktree alone what comes next, so that a scripted model can go on after any interruption as a real one would.
"""
from rig import answer, call, report, shell

# Looks at what is there and does, or names, the first thing that is missing. Its argument is different in each round: a
# command that baton ran twice by itself would stand twice in the log.
NEXT = r"""#!/bin/sh
echo "$1" >>"$TMPDIR/calls.log"
has() { test -e "$2" && grep -qx "$1" "$2"; }
done_commit() { git log --format=%s | grep -qx "$1"; }
commit() { git add -A && git commit -q -m "$1"; echo "committed $1"; }
whole() { test "$(tail -c 1 "$1" | od -An -tx1)" = " 0a" && test "$(tr -d 'a-z\n' <"$1" | wc -c)" = 0; }
# A power cut leaves files empty, cut short, or full of zeros. They are thrown away, so that they are made anew.
for f in b.txt c.txt d.txt e.txt; do
	if test -e $f && ! whole $f; then rm $f; fi
done
if ! has beta a.txt && ! has gamma a.txt; then echo "NEXT: edit a.txt alpha beta"
elif ! has b b.txt; then echo b >>b.txt; echo "b is there"
elif ! has c c.txt; then echo "NEXT: write c.txt c"
elif ! done_commit One; then commit One
elif ! has d d.txt; then echo "NEXT: job"
elif ! has gamma a.txt; then echo "NEXT: edit a.txt beta gamma"
elif ! has e e.txt; then echo e >>e.txt; echo "e is there"
elif ! done_commit Two; then commit Two
elif test -n "$(git status --porcelain)"; then commit Rest
else echo "NEXT: report"
fi
"""
JOB = "echo d >d.new; mv d.new d.txt"


def said(text, tool_call):
    return {"match": {"last_message": text}, "answer": answer(tool_call)}


WRITER_RULES = [
    said(r"^NEXT: edit (?<path>\S+) (?<old>\w+) (?<new>\w+)", call("edit", path="{{path}}", old_string="{{old}}", new_string="{{new}}")),
    said(r"^NEXT: write (?<path>\S+) (?<text>\w+)", call("write", path="{{path}}", content="{{text}}\n")),
    said(r"^NEXT: job", shell(JOB, background=True)),
    said(r"started background job (?<id>\w+)", call("job", action="wait", id="{{id}}", timeout_ms=20000)),
    said(r"^NEXT: report", report("All steps are done.", changed_files=["a.txt", "b.txt", "c.txt", "d.txt", "e.txt"])),
    {"match": {"turn": "0.."}, "answer": answer(shell("./next T{{turn}}"))},
]


def prepare_writer(world):
    world.repository({"a.txt": "alpha\n", "next": NEXT})
    world.git("update-index", "--chmod=+x", "next")
    world.git("commit", "-q", "-m", "Executable")
    world.git("checkout", "-q", "--", "next")
    world.git("config", "core.fileMode", "true")


BAD = "int add(int a, int b)\n{\n\treturn a - b; /* wrong */\n}\n"
FINE = "int one(void)\n{\n\treturn 1;\n}\n"
LONG = "".join(f"/* line {n} makes this file as large as a part of its own may be */\n" for n in range(9))


def finding():
    return {"for_each_match": {"tool": "read", "pattern": r"^ *(?<line>\d+)\t\s*(?<code>.*wrong.*)", "item": {
        "file": "{{call.path}}", "line": "{{line|int}}", "severity": "high", "category": "arithmetic",
        "claim": "add subtracts.", "evidence": "{{code}}"}}}


REVIEW_RULES = [
    {"match": {"turn": 0, "task": "^diff --git "}, "answer": {"text": "I read the files.", "tool_calls": [
        {"for_each_match": {"in": "task", "pattern": r"^diff --git a/\S+ b/(?<path>\S+)", "distinct": True,
                            "item": {"name": "read", "input": {"path": "{{path}}"}}}}]}},
    {"match": {"turn": "1..", "task": "^diff --git "}, "answer": answer(
        {"name": "report", "input": {"status": "done", "summary": "Read.", "findings": [finding()]}})},
    {"match": {"turn": 0, "role": "verifier"}, "answer": answer(call("read", path="two.c"))},
    {"match": {"turn": "1..", "role": "verifier"}, "answer": answer(
        report("It holds.", data={"verdict": "confirmed", "reason": "line 3 subtracts"}))},
]


def prepare_review(world):
    world.repository({"README.md": "A project.\n"})
    for name, text in (("one.c", FINE), ("two.c", BAD), ("three.c", FINE.replace("one", "three"))):
        world.write(f"{world.repo}/{name}", text + LONG)
    world.git("add", "-A")
    world.git("commit", "-q", "-m", "Add them")


class Job:
    def __init__(self, name, prepare, rules, args):
        self.name, self.prepare, self.rules, self.args = name, prepare, rules, args


JOBS = [
    # Two generations: the rounds of the first do not suffice.
    Job("writer", prepare_writer, WRITER_RULES, ["run", "Do all steps of ./next.", "--max-rounds", "9"]),
    # Three shards of one file each, and a verifier for the only finding.
    Job("review", prepare_review, REVIEW_RULES, ["review", "HEAD~1..HEAD", "--shard-tokens", "200", "--agents", "3"]),
]
