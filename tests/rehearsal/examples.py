#!/usr/bin/env python3
"""Plays the example scenarios with a small client in both protocols, on their real repositories.

Shows of issue 2: the scenarios answer from tool results only, so moving a planted defect, repairing it or
emptying the file changes the findings; and the fix example commits only what passes. baton itself plays
them in tests/integration.

Usage: examples.py BATON-REHEARSE EXAMPLES-FOLDER
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.request

PROGRAM, EXAMPLES = sys.argv[1:3]
TOOLS = ["read", "grep", "glob", "edit", "write", "shell", "report"]
PLANTED = {
    ("src/parse.c", "off-by-one"): "confirmed",
    ("src/parse.c", "null-dereference"): "confirmed",
    ("src/store.c", "error-handling"): "confirmed",
    ("src/store.c", "buffer-overflow"): "refuted",
    ("src/report.c", "resource-leak"): "confirmed",
    ("src/worker.c", "race"): "confirmed",
    ("tools/import.py", "injection"): "confirmed",
}


class Server:
    def __init__(self, scenario):
        self.process = subprocess.Popen([PROGRAM, "--watch-fd", "0", scenario],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.url = json.loads(self.process.stdout.readline())["url"]

    def get(self, path, body=None):
        request = urllib.request.Request(self.url + path, headers={"anthropic-version": "2023-06-01"},
                                         data=json.dumps(body).encode() if body else None)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def stop(self):
        stats = self.get("/__rehearsal/stats")
        assert stats["violations"] == [], stats["violations"]
        self.process.stdin.close()
        assert self.process.wait(timeout=30) == 0


def run_tool(root, name, given):
    if name == "read":
        with open(os.path.join(root, given["path"])) as source:
            lines = source.read().splitlines()
        first = given.get("offset", 1)
        return "".join(f"{n:6}\t{text}\n" for n, text in enumerate(lines, 1)
                       if first <= n < first + given.get("limit", 2000))
    if name == "grep":
        found = subprocess.run(["grep", "-rnE", given["pattern"], "."], cwd=root, text=True,
                               capture_output=True)
        return found.stdout or "no match"
    if name == "glob":
        listed = subprocess.run(["git", "ls-files", "*.c", "*.h"], cwd=root, text=True, capture_output=True)
        return "".join(f"{path}\t120 bytes\t2026-03-01 10:00\n" for path in listed.stdout.split())
    if name == "edit":
        path = os.path.join(root, given["path"])
        with open(path) as source:
            text = source.read()
        assert text.count(given["old_string"]) == 1, given
        with open(path, "w") as target:
            target.write(text.replace(given["old_string"], given["new_string"]))
        return "edited"
    assert name == "shell", name
    done = subprocess.run(["bash", "-c", given["command"]], cwd=root, text=True, capture_output=True)
    return done.stdout + done.stderr + (f"exit code {done.returncode}\n" if done.returncode else "")


def ask_anthropic(server, system, messages):
    answer = server.get("/v1/messages", {
        "model": "m", "max_tokens": 8000, "system": system, "messages": messages,
        "tools": [{"name": name, "input_schema": {"type": "object"}} for name in TOOLS]})
    messages.append({"role": "assistant", "content": answer["content"]})
    return [(b["id"], b["name"], b["input"]) for b in answer["content"] if b["type"] == "tool_use"]


def ask_openai(server, system, messages):
    answer = server.get("/v1/chat/completions", {
        "model": "m", "messages": [{"role": "system", "content": system}] + messages,
        "tools": [{"type": "function", "function": {"name": name}} for name in TOOLS]})
    message = answer["choices"][0]["message"]
    messages.append(message)
    return [(c["id"], c["function"]["name"], json.loads(c["function"]["arguments"]))
            for c in message.get("tool_calls", [])]


def play(server, openai, root, task):
    """One agent to its report."""
    messages = [{"role": "user", "content": task}]
    for _ in range(20):
        calls = (ask_openai if openai else ask_anthropic)(server, "You work here.", messages)
        assert calls, "an answer without calls"
        results = []
        for call, name, given in calls:
            if name == "report":
                return given
            results.append((call, run_tool(root, name, given)))
        if openai:
            messages += [{"role": "tool", "tool_call_id": call, "content": text} for call, text in results]
        else:
            messages.append({"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": call, "content": text} for call, text in results]})
    raise AssertionError("no report after 20 rounds")


def review(server, openai, root, diff):
    """Findings as {(file, category): (line, verdict)}."""
    found = {}
    for finding in play(server, openai, root, "Review this part:\n\n" + diff)["findings"]:
        task = {key: finding[key] for key in ("file", "line", "severity", "category", "claim", "evidence")}
        verdict = play(server, openai, root, "Try to refute this finding of a code review:\n\n"
                       + json.dumps(task, indent=2))
        found[finding["file"], finding["category"]] = (finding["line"], verdict["data"]["verdict"])
    return found


def change(root, path, how):
    path = os.path.join(root, path)
    with open(path) as source:
        text = source.read()
    with open(path, "w") as target:
        target.write(how(text))


def test_review(folder):
    server = Server(os.path.join(EXAMPLES, "review", "scenario.yaml"))
    for openai in (False, True):
        root = os.path.join(folder, f"review-{openai}")
        subprocess.run([os.path.join(EXAMPLES, "review", "make-repository.sh"), root], check=True,
                       stdout=subprocess.DEVNULL)
        diff = subprocess.run(["git", "diff", "HEAD~2", "HEAD"], cwd=root, text=True,
                              capture_output=True, check=True).stdout
        before = review(server, openai, root, diff)
        assert {key: verdict for key, (_, verdict) in before.items()} == PLANTED, before

        change(root, "src/worker.c", lambda text: "/* moved */\n\n" + text)
        change(root, "src/store.c", lambda text: "")
        change(root, "src/parse.c", lambda text: text.replace("i <= count", "i < count"))
        after = review(server, openai, root, diff)
        assert after["src/worker.c", "race"][0] == before["src/worker.c", "race"][0] + 2, after
        assert not any(path == "src/store.c" for path, _ in after), after
        assert ("src/parse.c", "off-by-one") not in after, after
        assert ("src/parse.c", "null-dereference") in after, after
    server.stop()


def test_fix(folder):
    server = Server(os.path.join(EXAMPLES, "fix", "scenario.yaml"))
    for openai in (False, True):
        for repairable in (True, False):
            root = os.path.join(folder, f"fix-{openai}-{repairable}")
            subprocess.run([os.path.join(EXAMPLES, "fix", "make-repository.sh"), root], check=True,
                           stdout=subprocess.DEVNULL)
            if not repairable:
                change(root, "tests/test_count.c", lambda text: text.replace("count_words(\"\"), 0",
                                                                             "count_words(\"\"), 7"))
            report = play(server, openai, root, "make test fails: repair it")
            log = subprocess.run(["git", "log", "--format=%H"], cwd=root, text=True,
                                 capture_output=True).stdout.split()
            if repairable:
                assert report["status"] == "done" and report["commits"] == log[:1], report
                assert report["tests"][0]["result"] == "passed", report
            else:
                assert report["status"] == "blocked" and len(log) == 1, report
                assert re.search("FAIL: words", report["summary"]), report
    server.stop()


with tempfile.TemporaryDirectory() as temporary:
    test_review(temporary)
    test_fix(temporary)
