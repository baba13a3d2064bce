#!/usr/bin/env python3
"""`baton review` on examples/review: the planted defects are found through real tool calls by reviewers that
work at the same time, one claim is refuted, and what the report says follows the files. Item 10 of the issue.
"""
import json
import re

from rig import answer, call, check, equal, fingerprint, in_turn, main, report, test, test_plain, unchanged

RANGE = "HEAD~2..HEAD"
PLANTED = {("src/parse.c", "off-by-one"): "high", ("src/parse.c", "null-dereference"): "medium",
           ("src/store.c", "error-handling"): "high", ("src/report.c", "resource-leak"): "medium",
           ("src/worker.c", "race"): "high", ("tools/import.py", "injection"): "critical"}


def review(world, *options, status=0, protocol="rehearsal"):
    done = world.baton("review", *options, "--model", f"{protocol}:{world.rules}", status=status)
    return done, world.run()


def findings(run, verdict="confirmed"):
    found = run.report()["result"]["findings"]
    return {(f["file"], f["category"]): f for f in found if verdict is None or f["verdict"] == verdict}


def line_of(world, path, text, rev=None):
    content = world.git("show", f"{rev}:{path}") if rev else world.read(f"{world.repo}/{path}")
    return next(n for n, line in enumerate(content.split("\n"), 1) if text in line)


@test
def review_finds_what_was_planted(world):
    world.rules = world.example("review")
    before = fingerprint(world.repo)
    done, run = review(world, RANGE)
    found = findings(run)
    equal({k: f["severity"] for k, f in found.items()}, PLANTED, "confirmed findings", done)
    equal(found["src/worker.c", "race"]["line"], line_of(world, "src/worker.c", "queue->done++"), "line of the race")
    equal(found["tools/import.py", "injection"]["line"], line_of(world, "tools/import.py", 'execute(f"'), "line of the injection")
    equal(found["src/parse.c", "off-by-one"]["line"], line_of(world, "src/parse.c", "i <= count"), "line of the off-by-one")
    for name in ("injection", "race", "off-by-one"):
        check(name in done.out, f"'{name}' is not in the printed report", done)
    unchanged(world, before)
    equal(len(world.git("worktree", "list").splitlines()), 1, "registered worktrees")
    world.no_strays(0)


@test_plain
def review_works_over_the_openai_protocol(world):
    world.rules = world.example("review")
    _, run = review(world, RANGE, protocol="rehearsal+openai")
    equal({k: f["severity"] for k, f in findings(run).items()}, PLANTED, "confirmed findings")


@test
def a_claim_is_refuted_by_its_verifier(world):
    world.rules = world.example("review")
    _, run = review(world, RANGE)
    refuted = findings(run, "refuted")
    equal(list(refuted), [("src/store.c", "buffer-overflow")], "refuted findings")
    check("returns before the copy" in json.dumps(refuted["src/store.c", "buffer-overflow"]), "no reason", refuted)


@test_plain
def findings_come_from_tool_calls(world):
    world.rules = world.example("review")
    _, run = review(world, RANGE)
    for record in run.records("agent.spawned"):
        used = {t["tool"] for t in run.tools(record["agent"])}
        check("read" in used, f"{record['agent']} ({record['role']}) read no file", used)
    check(all(f["file"] in json.dumps(run.transcript(f["found_by"]))
              for f in findings(run).values()), "a finding's file is not in its reviewer's transcript")


@test_plain
def reviewers_work_at_the_same_time(world):
    world.rules = world.example("review")
    _, run = review(world, RANGE, "--shard-tokens", "400", "--agents", "6")
    alive = most = 0
    for record in run.records():
        if record["type"] == "agent.spawned" and record["role"] == "reviewer":
            alive += 1
            most = max(most, alive)
        elif record["type"] == "agent.ended":
            alive -= 1
    check(most >= 4, f"only {most} reviewers were alive at once", run)
    equal({k: f["severity"] for k, f in findings(run).items()}, PLANTED, "confirmed findings from many shards")


@test_plain
def no_more_agents_than_allowed(world):
    world.rules = world.example("review")
    _, run = review(world, RANGE, "--shard-tokens", "400", "--agents", "2")
    alive = set()
    for record in run.records():
        if record["type"] == "agent.spawned":
            alive.add(record["agent"])
        elif record["type"] == "agent.done":
            alive.discard(record["agent"])
        check(len(alive) <= 2, "more agents than --agents are alive", alive)


@test
def a_moved_defect_moves_the_finding(world):
    world.rules = world.example("review")
    path = f"{world.repo}/tools/import.py"
    text = world.read(path)
    world.write(path, text.replace("def find_by_name", "# one\n# two\n# three\ndef find_by_name"))
    world.git("commit", "-q", "-a", "-m", "Move it")
    _, run = review(world, "HEAD~3..HEAD")
    equal(findings(run)["tools/import.py", "injection"]["line"], line_of(world, "tools/import.py", 'execute(f"'), "line after the move")


@test_plain
def an_emptied_file_has_no_findings(world):
    world.rules = world.example("review")
    world.write(f"{world.repo}/tools/import.py", "")
    world.write(f"{world.repo}/src/parse.c", '#include "parse.h"\n')
    world.git("commit", "-q", "-a", "-m", "Empty them")
    _, run = review(world, "HEAD~3..HEAD")
    left = {k: v for k, v in PLANTED.items() if k[0] not in ("tools/import.py", "src/parse.c")}
    equal({k: f["severity"] for k, f in findings(run).items()}, left, "findings that are left")


@test
def a_repaired_defect_is_gone(world):
    world.rules = world.example("review")
    path = f"{world.repo}/src/parse.c"
    world.write(path, world.read(path).replace("i <= count", "i < count"))
    world.git("commit", "-q", "-a", "-m", "Repair the loop")
    _, run = review(world, "HEAD~3..HEAD")
    left = {k: v for k, v in PLANTED.items() if k[1] != "off-by-one"}
    equal({k: f["severity"] for k, f in findings(run).items()}, left, "findings that are left")


def undo_two_commits(world):
    """The index and the checkout hold the new side, HEAD the old one."""
    world.git("reset", "-q", "--soft", "HEAD~2")


@test_plain
def staged_changes_are_reviewed(world):
    world.rules = world.example("review")
    undo_two_commits(world)
    world.write(f"{world.repo}/tools/import.py", "# the checkout differs from the index\n")
    before = fingerprint(world.repo)
    _, run = review(world, "--staged")
    equal({k: f["severity"] for k, f in findings(run).items()}, PLANTED, "findings in the index")
    unchanged(world, before)


@test
def worktree_changes_are_reviewed_untracked_ones_too(world):
    world.rules = world.example("review")
    undo_two_commits(world)
    world.git("reset", "-q")
    bad = "def other(db, name):\n    return db.execute(f\"SELECT {name}\")\n"
    world.write(f"{world.repo}/tools/new.py", bad)
    before = fingerprint(world.repo)
    _, run = review(world, "--worktree")
    expected = {**PLANTED, ("tools/new.py", "injection"): "critical"}
    equal({k: f["severity"] for k, f in findings(run).items()}, expected, "findings in the checkout")
    equal(findings(run)["tools/new.py", "injection"]["line"], 2, "line in the untracked file")
    unchanged(world, before)


@test_plain
def fail_on_decides_the_exit_status(world):
    world.rules = world.example("review")
    review(world, RANGE, "--fail-on", "high", status=5)
    review(world, RANGE, "--fail-on", "critical", status=5)
    for path, old, new in (("tools/import.py", '(f"SELECT id FROM parcels WHERE name = \'{name}\'")', '("SELECT 1")'),):
        world.write(f"{world.repo}/{path}", world.read(f"{world.repo}/{path}").replace(old, new))
    world.git("commit", "-q", "-a", "-m", "Repair the worst")
    review(world, "HEAD~3..HEAD", "--fail-on", "critical", status=0)
    review(world, "HEAD~3..HEAD", "--fail-on", "high", status=5)


@test_plain
def nothing_to_review_is_a_success(world):
    world.rules = world.example("review")
    _, run = review(world, "HEAD..HEAD", "--fail-on", "info")
    equal(run.report()["result"]["findings"], [], "findings")
    equal(run.records("agent.spawned"), [], "agents")


@test
def outputs_agree_with_each_other(world):
    world.rules = world.example("review")
    done, run = review(world, RANGE, "--sarif", world.path("out.sarif"), "--output", world.path("out.md"))
    markdown = world.read("out.md")
    for finding in findings(run).values():
        check(f"{finding['file']}:{finding['line']}" in markdown, "a finding is not in the Markdown", markdown)
    sarif = json.loads(world.read("out.sarif"))
    check_sarif(sarif)
    results = sarif["runs"][0]["results"]
    places = {(r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
               r["locations"][0]["physicalLocation"]["region"]["startLine"])
              for r in results if not r.get("suppressions")}
    equal(places, {(f["file"], f["line"]) for f in findings(run).values()}, "places in the SARIF file", done)


def check_sarif(sarif):
    """What the SARIF 2.1.0 schema requires of the parts that we write."""
    equal(sarif["version"], "2.1.0", "version")
    check(re.match(r"https?://.*sarif.*2\.1\.0.*\.json$", sarif["$schema"]), "$schema", sarif["$schema"])
    equal(set(sarif) - {"version", "$schema", "runs", "properties"}, set(), "members that the schema does not know")
    check(isinstance(sarif["runs"], list) and sarif["runs"], "runs")
    for run in sarif["runs"]:
        driver = run["tool"]["driver"]
        check(isinstance(driver["name"], str) and driver["name"], "tool.driver.name")
        rules = driver.get("rules", [])
        ids = [r["id"] for r in rules]
        equal(len(set(ids)), len(ids), "rule ids are unique")
        for rule in rules:
            for member in ("shortDescription", "fullDescription", "help"):
                check(member not in rule or isinstance(rule[member]["text"], str), f"rule.{member}.text")
        for result in run["results"]:
            check_sarif_result(result, ids)


def check_sarif_result(result, rule_ids):
    known = {"ruleId", "ruleIndex", "rule", "kind", "level", "message", "locations", "properties", "partialFingerprints",
             "fingerprints", "suppressions", "guid", "rank", "relatedLocations", "fixes", "hostedViewerUri", "baselineState"}
    equal(set(result) - known, set(), "members that the schema does not know")
    check(isinstance(result["message"]["text"], str) and result["message"]["text"], "message.text")
    check(result.get("level", "warning") in ("none", "note", "warning", "error"), "level", result)
    if "ruleIndex" in result:
        equal(rule_ids[result["ruleIndex"]], result["ruleId"], "ruleIndex points to ruleId")
    elif "ruleId" in result and rule_ids:
        check(result["ruleId"] in rule_ids, "ruleId names a rule", result)
    for suppression in result.get("suppressions", []):
        check(suppression["kind"] in ("inSource", "external"), "suppression.kind", suppression)
        check(suppression.get("status", "accepted") in ("accepted", "underReview", "rejected"), "suppression.status", suppression)
    for location in result["locations"]:
        place = location["physicalLocation"]
        uri = place["artifactLocation"]["uri"]
        check(uri and not uri.startswith("/") and " " not in uri, "a relative URI", uri)
        region = place.get("region", {})
        check(all(isinstance(region[k], int) and region[k] >= 1 for k in region if k != "snippet"), "region", region)
    for key, value in result.get("partialFingerprints", {}).items():
        check(isinstance(value, str), f"partialFingerprints.{key} is a text", value)


@test_plain
def requests_of_a_review_break_no_rule_of_the_provider(world):
    world.rules = world.example("review")
    for api in ("anthropic", "openai"):
        server = world.server(world.rules)
        world.provider(server.url, api)
        world.baton("review", RANGE, "--model", "fake/some-model", "--window", "200k", "--shard-tokens", "600")
        stats = server.stats()
        equal(stats["n_violations"], 0, f"violations ({api})", stats["violations"])
        equal((stats["refused"], stats["unmatched"], stats["bad_http"]), (0, 0, 0), f"refused, unmatched, bad HTTP ({api})")
        check(stats["requests"] >= 12, "requests", stats)
        server.stop()


@test
def a_finding_outside_the_shard_is_dropped_with_a_note(world):
    world.repository({"a.txt": "one\n", "b.txt": "one\n"})
    world.write(f"{world.repo}/a.txt", "one\ntwo\n")
    world.git("commit", "-q", "-a", "-m", "Two")
    finding = {"severity": "high", "category": "x", "claim": "wrong", "evidence": "e"}
    world.rules = world.scenario(in_turn(
        answer(call("read", path="a.txt")),
        answer(report(findings=[{**finding, "file": "b.txt", "line": 1}, {**finding, "file": "a.txt", "line": 900},
                                {**finding, "file": "a.txt", "line": 2}, {**finding, "file": "../../etc/passwd", "line": 1}]))))
    _, run = review(world, "HEAD~1..HEAD", "--verify", "off")
    equal(list(findings(run, None)), [("a.txt", "x")], "findings that stand")
    equal(findings(run, None)["a.txt", "x"]["line"], 2, "its line")
    text = json.dumps(run.report())
    check("b.txt" in text and "900" in text, "what was dropped is not noted", text)


@test
def duplicates_are_merged(world):
    world.repository({"a.txt": "one\n"})
    world.write(f"{world.repo}/a.txt", "one\ntwo\n")
    world.git("commit", "-q", "-a", "-m", "Two")
    finding = {"file": "a.txt", "line": 2, "severity": "low", "category": "x", "claim": "The second line is wrong.", "evidence": "two"}
    world.rules = world.scenario(in_turn(answer(call("read", path="a.txt")), answer(report(findings=[finding, finding]))))
    _, run = review(world, "HEAD~1..HEAD")
    equal(len(run.report()["result"]["findings"]), 1, "findings")


@test_plain
def reviewers_get_no_tool_that_writes(world):
    world.repository({"a.txt": "one\n"})
    world.write(f"{world.repo}/a.txt", "one\ntwo\n")
    world.git("commit", "-q", "-a", "-m", "Two")
    world.rules = world.scenario(in_turn(
        answer(call("write", path="a.txt", content="hacked"), call("shell", command="echo hacked >a.txt")),
        answer(call("read", path="a.txt")), answer(report())))
    _, run = review(world, "HEAD~1..HEAD")
    results = run.results()
    check(all("hacked" not in text for name, text in results if name == "read"), "the reviewer wrote", results)
    check(all(name in ("write", "shell") and "is not available" in text for name, text in results[:2]), "write and shell did not fail", results)


@test
def a_lost_reviewer_leaves_a_note_and_a_failure(world):
    world.repository({"a.txt": "one\n", "b.txt": "one\n"})
    for name in ("a.txt", "b.txt"):
        world.write(f"{world.repo}/{name}", "one\ntwo\n" + f"{name} text that makes the diff longer\n" * 40)
    world.git("commit", "-q", "-a", "-m", "Two")
    world.rules = world.scenario([
        {"match": {"task": "diff --git a/b.txt"}, "fault": {"status": 400, "message": "no"}},
        *in_turn(answer(call("read", path="a.txt")),
                 answer(report(findings=[{"file": "a.txt", "line": 2, "severity": "low", "category": "x",
                                          "claim": "wrong", "evidence": "two"}])))])
    done, run = review(world, "HEAD~1..HEAD", "--shard-tokens", "300", status=1)
    equal(list(findings(run, None)), [("a.txt", "x")], "the other reviewer's finding is kept", done)
    check("not reviewed: b.txt" in json.dumps(run.report()) or "not reviewed: b.txt" in done.out, "what was not reviewed is not named", done)


main()
