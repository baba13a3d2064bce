#!/usr/bin/env python3
"""Documents against the source and the built program: check_documents.py CHECK ROOT BUILD

CHECK is a function below without its "check_". Prints what differs, one line each, and exits 1.
"""
import glob
import importlib.util
import os
import re
import shutil
import subprocess
import sys

SKIPPED = 77
problems = []


def read(*parts):
    with open(os.path.join(*parts), encoding="utf-8") as f:
        return f.read()


def expect(condition, text):
    if not condition:
        problems.append(text)


def generator(root):
    """docs/gen-options.py as a module: its tables are what the documents must name."""
    spec = importlib.util.spec_from_file_location("gen_options", os.path.join(root, "docs/gen-options.py"))
    module = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode = True
    spec.loader.exec_module(module)
    return module


def tables(root):
    gen = generator(root)
    scopes = gen.load_scopes(root)
    return gen, gen.load_options(root, scopes), gen.load_commands(root, scopes)


def baton(build, *args):
    env = {"PATH": os.environ["PATH"], "HOME": build, "LANG": "C.UTF-8"}
    env.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})
    return subprocess.run([f"{build}/orchestrator/baton", *args], env=env, capture_output=True, text=True, check=True).stdout


def plain(mdoc):
    """A manual page's source as one would write it without escapes."""
    return mdoc.replace("\\-", "-").replace("\\&", "")


# ---- the program says what the tables say ----

def check_help(root, build):
    _, options, commands = tables(root)
    listed = baton(build, "--help")
    for command in commands:
        expect(command["summary"] in listed, f"'baton --help' lacks '{command['name']}'")
        text = baton(build, command["name"], "--help")
        says = set(re.findall(r"^  --([\w-]+)", text, re.M))
        should = {o["name"] for o in options if o["scope"] & command["scope"]}
        expect(says == should, f"'baton {command['name']} --help' and the table differ: {sorted(says ^ should)}")
    shown = re.findall(r"^  ([a-z]+) ", listed, re.M)
    expect(shown == [c["name"] for c in commands], f"'baton --help' lists {shown}")


def check_manual(root, build):
    _, options, commands = tables(root)
    text = plain(read(build, "docs/baton.1"))
    for option in options:
        arg = f" Ar {option['metavar']}" if option["metavar"] else ""
        short = f"Fl {option['short'][1:]} , " if option["short"] else ""
        expect(f".It {short}Fl -{option['name']}{arg}\n" in text, f"baton.1 lacks --{option['name']}{arg}")
    for command in commands:
        expect(re.search(rf"^\.It Cm {command['name']}\b", text, re.M), f"baton.1 lacks the command {command['name']}")
    expect(not re.search(r"@[a-zA-Z]+@|^\.\\\" @", text, re.M), "baton.1 has a mark that was not filled in")
    statuses = re.findall(r"^\tEXIT_\w+ = (\d+),", read(root, "orchestrator/command.h"), re.M)
    for status in statuses:
        expect(re.search(rf"^\.It {status}$", text, re.M), f"baton.1 lacks the exit status {status}")
    for provider in re.findall(r'^    "(\w+)": \{\n      "api"', read(root, "data/models.json"), re.M):
        if provider != "rehearsal":
            expect(re.search(rf"\b{provider}\b", text), f"baton.1 lacks the provider {provider}")
    referred = set(re.findall(r"Fl -([a-z][\w-]+)", text)) - {"name", "no-name", "help"}
    for name in sorted(referred - {o["name"] for o in options}):
        problems.append(f"baton.1 speaks of --{name}, which is no option")


def check_manual_lint(root, build):
    if not shutil.which("mandoc"):
        sys.exit(SKIPPED)
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", f"{build}/docs/baton.1"], capture_output=True, text=True)
    expect(done.returncode == 0, done.stdout + done.stderr)


# ---- completion, asked as bash asks it ----

def complete(build, *words):
    script = '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _baton; printf "%s\\n" "${COMPREPLY[@]}"'
    out = subprocess.run(["bash", "-c", script, "complete", f"{build}/docs/baton", *words], capture_output=True, text=True)
    expect(out.stderr == "", f"completion of {words}: {out.stderr}")
    return set(out.stdout.split())


def check_completion(root, build):
    _, options, commands = tables(root)
    named = {c["name"] for c in commands}
    expect(complete(build, "baton", "") == named | {"--help", "--version"}, "completion of commands differs")
    for command in commands:
        should = {f"--{o['name']}" for o in options if o["scope"] & command["scope"]} | {"--help"}
        expect(complete(build, "baton", command["name"], "--") == should, f"completion of {command['name']} differs")
    for option in options:
        if option["choices"]:
            command = next(c["name"] for c in commands if c["scope"] & option["scope"])
            flag = f"--{option['name']}"
            expect(complete(build, "baton", command, flag, "") == set(option["choices"]), f"values of {flag} differ")
            expect(complete(build, "baton", command, flag, "=", "") == set(option["choices"]), f"values of {flag}= differ")
    after_flag = complete(build, "baton", "run", "--keep", "--branch")
    expect(after_flag == {"--branch-prefix"}, f"a flag is taken for an option with a value: {after_flag}")


# ---- pages ----

def check_configuration(root, build):
    gen, options, commands = tables(root)
    text = read(root, "docs/configuration.md")
    expect(gen.fill_markdown(text, options, commands, gen.load_knobs(root)) == text,
           "a table in docs/configuration.md is old: python3 docs/gen-options.py . docs/configuration.md docs/configuration.md")
    built_in = {os.path.basename(p)[:-3] for p in glob.glob(f"{root}/data/roles/*.md")}
    for role in sorted(built_in):
        expect(re.search(rf"\b{role}\b", text), f"docs/configuration.md lacks the role {role}")


def check_environment(root, build):
    manual = read(root, "docs/baton.1.in").split(".Sh ENVIRONMENT")[1].split(".Sh FILES")[0]
    source = read(root, "handoff/box_command.c")
    allowed = re.search(r"allowed\[\] = \{(.*?)\};", source, re.S).group(1)
    names = re.findall(r'"([A-Z_*]+)"', allowed) + re.findall(r'[{"]"?([A-Za-z_]+)=', source) + \
        re.findall(r'\{"(\w+)", "', source)
    expect(len(set(names)) > 30, f"only {len(set(names))} variables were found in the source")
    for name in sorted(set(names)):
        expect(name in manual, f"docs/baton.1.in lacks the variable {name} of agents' shells")


def check_scenarios(root, build):
    text = read(root, "docs/scenarios.md").split("### What the tools take")[1].split("### fault")[0]
    for name, path in [(n, f"agent/tools/{n}.c") for n in ("read", "write", "edit", "glob", "grep", "shell", "notes", "recall")] + \
            [("job", "agent/tools/job_tool.c"), ("agent", "agent/tools/subagent.c"), ("report", "handoff/report.c")]:
        schema = re.search(r'"\{\\"type\\":\\"object.*?";\n', read(root, path), re.S).group(0)
        schema = re.sub(r'"\s*(?:STRING_LIST)?\s*"', "", schema).replace('\\"', '"')
        row = text if name == "report" else re.search(rf"^\| `{name}` .*$", text, re.M).group(0)
        fields = set(re.findall(r'"(\w+)":(?:\{|,)', schema)) - {"properties", "items"}
        expect(fields, f"{path}: no fields were found")
        for field in fields:
            expect(f"`{field}`" in row, f"docs/scenarios.md lacks the input {field} of {name}")
        for word in re.findall(r'"(\w+)"', "".join(re.findall(r'"enum":\[(.*?)\]', schema))):
            expect(word in row, f"docs/scenarios.md lacks the word {word} of {name}")


def check_readme(root, build):
    _, options, commands = tables(root)
    names = {o["name"] for o in options}
    pages = [p for pattern in ("README.md", "docs/*.md", "examples/*/README.md") for p in glob.glob(f"{root}/{pattern}")]
    for path in [os.path.relpath(page, root) for page in pages]:
        text = read(root, path)
        for line in text.splitlines():
            if not re.search(r"\bbaton (run|review|config|clean|rehearse)\b|^    --|^\| .*`--", line):
                continue
            for name in re.findall(r"(?<![\w-])--([a-z][\w-]+)", line):
                known = name in names or name.startswith("no-") and name[3:] in names or name == "help"
                expect(known, f"{path} speaks of --{name}, which is no option")
        for name in re.findall(r"^    (?:\$ )?baton ([a-z]+)", text, re.M):
            expect(name in {c["name"] for c in commands} | {"agent"}, f"{path} speaks of 'baton {name}'")
    readme = read(root, "README.md")
    for path in re.findall(r"(?<![\w/.])((?:docs|examples|tests|data|orchestrator)/[\w/.-]*\w)", readme):
        expect(os.path.exists(os.path.join(root, path)) or path.startswith("docs/baton"), f"README.md names {path}, which is not there")
    for folder in re.findall(r"^\| `([\w/]+)/`", readme, re.M):
        expect(os.path.isdir(os.path.join(root, folder)), f"README.md names the folder {folder}")


# ---- the journal ----

def journal_records(root):
    """{type: (durability, {field: kind})} of every record, by the catalogue."""
    text = read(root, "orchestrator/record_types.h").replace("\\\n", "\n")
    rows = re.findall(r'^\tRECORD\((\w+), "([\w.]+)", (\w+),\s*((?:"[^"]*"\s*)+)\)', text, re.M)
    expect(len(rows) == text.count("\n\tRECORD("), "a row of record_types.h was not understood")
    records = {}
    for name, kind, durability, fields in rows:
        expect(name == kind.upper().replace(".", "_"), f"record_types.h: RECORD_{name} is '{kind}'")
        records[kind] = (durability.lower().replace("with_budget", "with a budget").replace("_", " "), fields_of(fields))
    return records


def fields_of(fmt):
    return dict(re.findall(r"(\w+):([sidbj])", "".join(re.findall(r'"([^"]*)"', fmt))))


def check_journal_calls(root, build):
    """Each journal_add writes fields of its row only, and each row and field is written by somebody."""
    records = {kind.upper().replace(".", "_"): fields for kind, (_, fields) in journal_records(root).items()}
    sources = {p: read(p) for p in sorted(glob.glob(f"{root}/orchestrator/**/*.c", recursive=True))}
    call = re.compile(r'journal_add\(\s*[^,]+,\s*(?:RECORD_(\w+)|type|event_records\[event\]),\s*((?:"[^"]*"\s*)+)', re.S)
    gateway = "".join(text for p, text in sources.items() if "/gateway/" in p)
    told = {"type": [f"GATEWAY_{name.upper()}" for name in re.findall(r'\bnote\([^,]+, "(\w+)"', gateway)],
            "event": [f"AGENT_{name.upper()}" for name in catalogue(root, "handoff/event_types.h", "EVENT")]}
    written = {}
    for path, text in sources.items():
        if path.endswith("/journal.c"):
            continue
        calls = list(call.finditer(text))
        expect(len(calls) == text.count("journal_add("), f"{path}: a call of journal_add was not understood")
        for m in calls:
            for name in [m.group(1)] if m.group(1) else told["event" if "event_records" in m.group(0) else "type"]:
                fields = fields_of(m.group(2))
                written.setdefault(name, {}).update(fields)
                for field, kind in fields.items():
                    expect(records.get(name, {}).get(field) == kind, f"{path}: {field}:{kind} is no field of RECORD_{name}")
    for name, fields in records.items():
        unused = sorted(set(fields) - set(written.get(name, {})))
        expect(not unused, f"record_types.h: nobody writes {', '.join(unused)} of RECORD_{name}")


def check_journal(root, build):
    text = read(root, "docs/journal.md")
    parts = re.split(r"^### `([a-z._]+)`, (.*)\n", text, flags=re.M)[1:]
    documented = {parts[i]: (parts[i + 1], parts[i + 2]) for i in range(0, len(parts), 3)}
    records = journal_records(root)
    for name, (durability, fields) in sorted(records.items()):
        if name not in documented:
            problems.append(f"docs/journal.md lacks {name}")
            continue
        says, body = documented[name]
        expect(says == durability, f"docs/journal.md calls {name} '{says}', the source '{durability}'")
        for field in sorted(fields):
            expect(f"`{field}`" in body, f"docs/journal.md lacks the field {field} of {name}")
    for name in sorted(set(documented) - set(records)):
        problems.append(f"docs/journal.md tells of {name}, which is no record")
    check_journal_calls(root, build)


def catalogue(root, path, row):
    """The first words in quotes of the rows `row(NAME, "word", ...)` of an X-macro."""
    words = re.findall(rf'^\t{row}\(\w+, (?:\d+, )?"([\w.]+)"', read(root, path), re.M)
    expect(words, f"{path}: no row {row} was found")
    return words


def check_events(root, build):
    text = read(root, "docs/documents.md").split("## event,")[1].split("\n## ")[0]
    says = re.findall(r"^    ([a-z_]+(?:, [a-z_]+)*) ", text, re.M)
    named = {name for line in says for name in line.split(", ")}
    known = set(catalogue(root, "handoff/event_types.h", "EVENT"))
    expect(named == known, f"docs/documents.md and the events differ: {sorted(named ^ known)}")
    states = set(re.findall(r'"(\w+)"', re.search(r'^    state    \{"state": ([^,]*),', text, re.M).group(1)))
    known = set(catalogue(root, "handoff/event_types.h", "ACTIVITY"))
    expect(states == known, f"docs/documents.md and the states differ: {sorted(states ^ known)}")


def main():
    check, root, build = sys.argv[1:]
    globals()[f"check_{check}"](os.path.abspath(root), os.path.abspath(build))
    for problem in problems:
        print(problem)
    print(f"{check}: {len(problems)} problems")
    sys.exit(1 if problems else 0)


main()
