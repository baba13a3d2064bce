"""The peer as a program under test: aimock, started on a free port of loopback and read through its journal.

One server belongs to one test. Its fixtures are made here, because a fault of aimock is a property of a
fixture: script() puts each fault in front of the good answer of the same turn, with the number of the try
that it spoils, so that which request fails is no matter of chance.
"""
import json
import os
import sys
import urllib.request

from rig import check, wait_for

PROGRAM = os.environ.get("BATON_AIMOCK", "")
# A server must not outlive a test that is killed: PR_SET_PDEATHSIG stays in force over exec.
DIES_WITH_ITS_PARENT = ("import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9, 0, 0, 0); "
                        "os.execvp(sys.argv[1], sys.argv[1:])")
USAGE = {"prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1050}

# What aimock can do to a try, as fields of a fixture.
RATE_LIMIT = {"chaos": {"rateLimitRate": 1}}                       # 429, Retry-After: 1
MALFORMED = {"chaos": {"malformedRate": 1}}                        # 200, application/json, no JSON
DISCONNECT = {"chaos": {"disconnectRate": 1}}                      # the socket closes without a byte
DROP = {"chaos": {"dropRate": 1}}                                  # 500
CUT = {"truncateAfterChunks": 4, "latency": 20}                    # the stream ends within the answer
LATE_DISCONNECT = {"disconnectAfterMs": 200, "latency": 60, "chunkSize": 4}  # the same, by time


def call(name, **arguments):
    return {"name": name, "arguments": arguments}


def turn(index, answer, faults=(), **match):
    """Fixtures of one turn: each fault spoils one try, then the answer comes."""
    match = {"turnIndex": index, **match}
    good = {"usage": USAGE, **answer}
    spoiled = [{"match": {**match, "sequenceIndex": n}, "response": good, **fault} for n, fault in enumerate(faults)]
    return spoiled + [{"match": match, "response": good}]


def script(*turns):
    """All fixtures; a dialogue that leaves the script is ended by a report that says so."""
    astray = {"toolCalls": [call("report", status="blocked", summary="The dialogue has left the script.")]}
    return [fixture for part in turns for fixture in part] + [{"match": {}, "response": astray}]


class Aimock:
    def __init__(self, world, fixtures, *options):
        path = world.write("fixtures.json", json.dumps({"fixtures": fixtures}))
        args = ["node", PROGRAM, "--port", "0", "--fixtures", path, "--strict", "--validate-on-load",
                "--latency", "5", "--chunk-size", "20", *options]
        self.started = world.start_program([sys.executable, "-c", DIES_WITH_ITS_PARENT, *args],
                                           env={"AIMOCK_STRICT_TURN_INDEX": "1"})
        self.started.outlives_runs = True
        self.url = wait_for(self.address, "aimock listens", 30, lambda: self.started.text() + self.started.text("err"))
        wait_for(lambda: self.ask("GET", "health").get("status") == "ok", "aimock is healthy", 10)

    def address(self):
        check(not self.started.ended(), "aimock has ended", self.started.text(), self.started.text("err"))
        said = [line for line in self.started.text().split("\n")[:-1] if " listening on " in line]
        return said[0].rsplit(" ", 1)[1] if said else None

    def ask(self, method, what, body=None):
        request = urllib.request.Request(f"{self.url}/__aimock/{what}", method=method,
                                         data=None if body is None else json.dumps(body).encode())
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=20) as answer:
            return json.load(answer)

    def chaos(self, **rates):
        """Faults of every request from now on, in place of those on the command line; without rates none."""
        self.ask("POST", "chaos", rates)

    def journal(self):
        return self.ask("GET", "journal")


# ---- reading the journal


def outcome(entry):
    """What aimock made of a request: "ok" or the name of the fault."""
    response = entry["response"]
    if response.get("interrupted"):
        return response["interruptReason"]
    return response.get("chaosAction") or ("ok" if response["status"] == 200 else str(response["status"]))


def name_of(fault):
    """The outcome() of a request that a chaos fault has spoiled."""
    return next(iter(fault["chaos"])).removesuffix("Rate")


def turn_of(entry):
    return sum(1 for m in entry["body"]["messages"] if m["role"] == "assistant")


def well_formed(entry, api):
    """A request that a provider would take. Over the Anthropic protocol aimock keeps its own translation into
    the form of OpenAI, so one set of rules serves both."""
    headers, body = entry["headers"], entry["body"]
    path = {"anthropic": "/v1/messages", "openai": "/v1/chat/completions"}[api]
    check(entry["method"] == "POST" and entry["path"].split("?")[0] == path, "method and path", entry["method"], entry["path"])
    check(headers["content-type"].startswith("application/json"), "content-type", headers)
    check("anthropic-version" in headers and "x-api-key" in headers if api == "anthropic" else "authorization" in headers,
          "headers that the protocol wants", headers)
    check(body["stream"] is True and body["model"] == "peer-model", "model and stream", body["model"], body["stream"])
    for tool in body["tools"]:
        function = tool["function"]
        check(function["name"] and function["description"] and function["parameters"]["type"] == "object", "a tool", tool)
    answered_calls(body["messages"])


def answered_calls(messages):
    """System, then a user's message; each call has one result, right behind it, before anybody speaks."""
    check([m["role"] for m in messages[:2]] == ["system", "user"], "first messages", [m["role"] for m in messages])
    open_calls = []
    for message in messages:
        if message["role"] == "tool":
            check(message["tool_call_id"] in open_calls, "a result without a call", message)
            check(message["content"], "an empty result", message)
            open_calls.remove(message["tool_call_id"])
            continue
        check(message["role"] == "user" or not open_calls, "calls without results", open_calls)
        check(message.get("content") or message.get("tool_calls"), "an empty message", message)
        for one in message.get("tool_calls") or []:
            check(isinstance(json.loads(one["function"]["arguments"]), dict), "arguments", one)
            open_calls.append(one["id"])
    check(not open_calls, "calls without results", open_calls)


def only_grows(entries):
    """A later request of one agent begins with the messages of an earlier one; a repeated try is the same."""
    for earlier, later in zip(entries, entries[1:]):
        a, b = earlier["body"]["messages"], later["body"]["messages"]
        check(b[:len(a)] == a, "a request rewrites what an earlier one had", a, b)
        if len(a) == len(b):
            check(earlier["body"] == later["body"], "a second try is another request", earlier["body"], later["body"])
