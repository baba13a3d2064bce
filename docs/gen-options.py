#!/usr/bin/env python3
"""Fills a template with the tables of options and commands: gen-options.py ROOT TEMPLATE OUTPUT

Reads orchestrator/option_table.h, settings.h (scopes) and command.c, handoff/knobs.h, data/models.json and data/roles/ below ROOT,
so that the man page and the completion name what the program knows, and nothing else. The template's kind
is told by its name: baton.1.in (mdoc) or baton.bash.in. With a .md file as TEMPLATE and OUTPUT the tables
between their marks are replaced; tests/docs fails when that was forgotten.
"""
import json
import os
import re
import sys

STRING = r'"((?:[^"\\]|\\.)*)"'
KNOB_MARKS = ("<!-- knobs: written by docs/gen-options.py -->\n", "<!-- end of knobs -->\n")
MARKS = ("<!-- options: written by docs/gen-options.py -->\n", "<!-- end of options -->\n")


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as f:
        return f.read()


def join_strings(text):
    """"a" "b" becomes "ab", as for the compiler; continued lines become one."""
    text = text.replace("\\\n", " ")
    return re.sub(r'"\s+"', "", re.sub(r"\s+", " ", text))


def load_scopes(root):
    body = re.search(r"enum option_scope \{(.*?)\};", read(root, "orchestrator/settings.h"), re.S).group(1)
    scopes = {}
    for name, value in re.findall(r"(SCOPE_\w+) = ([^,]+),", body):
        scopes[name] = 0
        for part in value.split("|"):
            part = part.strip()
            scopes[name] |= scopes[part] if part in scopes else int(part)
    return scopes


def load_options(root, scopes):
    text = read(root, "orchestrator/option_table.h")
    text = join_strings(text[text.index("#define OPTION_TABLE"):])
    row = re.compile(rf"OPTION\((\w+), {STRING}, (\w+), (\w+), (\w+), (\d+), (\d+), {STRING}, {STRING}, {STRING}\)")
    keys = ("id", "name", "type", "scope", "layers", "min", "max", "default", "metavar", "help")
    options = [dict(zip(keys, match.groups())) for match in row.finditer(text)]
    if len(options) != text.count("OPTION("):
        sys.exit(f"gen-options: {text.count('OPTION(')} rows in option_table.h, {len(options)} understood")
    for option in options:
        option["scope"] = scopes[option["scope"]]
        option["choices"] = [c for c in option["default"].split("|") if c] if option["type"] == "CHOICE" else []
        if option["type"] == "CHOICE":
            option["default"] = option["default"].split("|")[0]
        short = re.search(r" \(short: (-\w)\)$", option["help"])
        option["short"] = short.group(1) if short else None
        option["help"] = option["help"][:short.start()] if short else option["help"]
    return options


def load_knobs(root):
    text = join_strings(read(root, "handoff/knobs.h"))
    text = text[text.index("#define CONTEXT_KNOBS"):text.index("struct context_knobs {")]
    row = re.compile(rf"KNOB\((\w+), {STRING}, (\w+), ([^,]+), ([^,]+), ([^,]+), {STRING}\)")
    keys = ("field", "name", "kind", "min", "max", "default", "help")
    knobs = [dict(zip(keys, match.groups())) for match in row.finditer(text)]
    if len(knobs) != text.count("KNOB("):
        sys.exit(f"gen-options: {text.count('KNOB(')} rows in knobs.h, {len(knobs)} understood")
    for knob in knobs:
        for key in ("min", "max", "default"):
            low, _, shift = knob[key].partition("<<")
            knob[key] = int(low) << int(shift or 0)
    return knobs


def load_commands(root, scopes):
    text = join_strings(read(root, "orchestrator/command.c"))
    text = text[text.index("commands[] = {"):]
    rows = re.findall(rf"\{{\.name = {STRING}, \.args = {STRING}, \.summary = {STRING}, ([^}}]*)\}}", text)
    if len(rows) != text.count(".name = "):
        sys.exit(f"gen-options: {text.count('.name = ')} rows in command.c, {len(rows)} understood")
    commands = []
    for name, args, summary, rest in rows:
        if ".hidden = true" in rest:
            continue
        scope = scopes[re.search(r"\.scope = (\w+)", rest).group(1)]
        commands.append({"name": name, "args": args, "summary": summary, "scope": scope})
    return commands


def commands_of(option, commands):
    """Names of the commands that take it. `config` goes without saying: it takes what the work does."""
    names = [c["name"] for c in commands if c["scope"] & option["scope"]]
    return "all" if len(names) == len(commands) else ", ".join(n for n in names if n != "config")


def sentence(text):
    return text[0].upper() + text[1:] + "."


def layers_text(option):
    return {"CFG_ANY": "any layer", "CFG_TRUSTED": "not a project's file", "CFG_CLI": "command line only"}[option["layers"]]


# ---- mdoc ----

def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text[:1] in (".", "'") else text


def man_options(options, commands):
    out = []
    for option in options:
        short = f"Fl {option['short'][1:]} , " if option["short"] else ""
        arg = f" Ar {option['metavar']}" if option["metavar"] else ""
        out.append(f".It {short}Fl \\-{roff(option['name'])}{arg}")
        out.append(roff(sentence(option["help"])))
        facts = []
        if option["choices"]:
            facts.append("One of " + ", ".join(option["choices"]) + ".")
        if option["default"] and "(default:" not in option["help"]:
            facts.append(f"Default: {option['default']}.")
        facts.append(f"Commands: {commands_of(option, commands)}.")
        if option["layers"] != "CFG_ANY":
            facts.append(sentence(layers_text(option)))
        out += [roff(fact) for fact in facts]
    return "\n".join(out)


def man_commands(commands):
    """Name, arguments and summary of each, where the template has no text of its own on it."""
    out = []
    for command in commands:
        args = re.sub(r"[\[\]]", "", command["args"].replace("...", " ..."))
        optional = command["args"].startswith("[")
        words = f" {'Op ' if optional else ''}Ar {args}" if args else ""
        if " [" in command["args"]:
            words = " Ar RUN/AGENT Op Ar DIR"
        out.append(f".It Cm {command['name']}{words}")
        out.append(roff(sentence(command["summary"])))
        out.append(f"@{command['name']}@")
    return "\n".join(out)


def fill_man(template, options, commands):
    details = dict(re.findall(r"^\.\\\" @about (\w+)\n(.*?)^\.\\\" @end\n", template, re.S | re.M))
    template = re.sub(r"^\.\\\" @about \w+\n.*?^\.\\\" @end\n", "", template, flags=re.S | re.M)
    unknown = set(details) - {c["name"] for c in commands}
    if unknown:
        sys.exit(f"gen-options: the man page tells of unknown commands: {', '.join(sorted(unknown))}")
    listed = man_commands(commands)
    for command in commands:
        listed = listed.replace(f"@{command['name']}@", details.get(command["name"], "").strip("\n"))
    listed = re.sub(r"\n{2,}", "\n", listed)
    return template.replace("@COMMANDS@", listed.strip()).replace("@OPTIONS@", man_options(options, commands))


# ---- bash ----

def fill_bash(template, options, commands, root):
    per_command = []
    for command in commands:
        words = [f"--{o['name']}" for o in options if o["scope"] & command["scope"]]
        words += [o["short"] for o in options if o["scope"] & command["scope"] and o["short"]]
        per_command.append(f"\t{command['name']}) words='{' '.join(words + ['--help'])}' ;;")
    values = []
    for option in options:
        if option["choices"]:
            values.append(f"\t--{option['name']}) words='{' '.join(option['choices'])}' ;;")
    flags = [f"--{o['name']}" for o in options if o["type"] == "FLAG"] + ["--help", "-h"]
    flags += [o["short"] for o in options if o["type"] == "FLAG" and o["short"]]
    folders = ["--" + o["name"] for o in options if o["metavar"] == "DIR"]
    files = ["--" + o["name"] for o in options if o["type"] == "PATH" and o["metavar"] != "DIR"]
    folders += [o["short"] for o in options if o["metavar"] == "DIR" and o["short"]]
    models = sorted(json.loads(read(root, "data/models.json"))["models"])
    roles = sorted(f[:-3] for f in os.listdir(os.path.join(root, "data/roles")) if f.endswith(".md"))
    for mark, text in {
        "@COMMANDS@": " ".join(c["name"] for c in commands), "@OPTIONS_CASES@": "\n".join(per_command),
        "@VALUE_CASES@": "\n".join(values), "@FLAGS@": "|".join(flags), "@FOLDERS@": "|".join(folders),
        "@FILES@": "|".join(files), "@MODELS@": " ".join(models), "@ROLES@": " ".join(roles),
    }.items():
        template = template.replace(mark, text)
    return template


# ---- Markdown ----

def markdown_table(options, commands):
    lines = ["| option | type | default | commands | set by | meaning |", "| --- | --- | --- | --- | --- | --- |"]
    for option in options:
        kind = " \\| ".join(option["choices"]) if option["choices"] else option["type"].lower()
        lines.append(f"| `{option['name']}` | {kind} | {option['default']} | {commands_of(option, commands)} "
                     f"| {layers_text(option)} | {option['help']} |")
    return "\n".join(lines) + "\n"


def knob_table(knobs):
    lines = ["| name | type | range | default | meaning |", "| --- | --- | --- | --- | --- |"]
    for knob in knobs:
        flag = knob["kind"] == "FLAG"
        default = ["false", "true"][knob["default"]] if flag else f"{knob['default']:,}"
        span = "" if flag else f"{knob['min']:,} to {knob['max']:,}"
        kind = {"FLAG": "true \\| false", "LEARNED": "tokens \\| auto", "PERCENT": "%",
                "CHARS": "characters"}.get(knob["kind"], knob["kind"].lower())
        lines.append(f"| `{knob['name']}` | {kind} | {span} | {default} | {knob['help']} |")
    return "\n".join(lines) + "\n"


def replace_between(template, marks, text):
    before, rest = template.split(marks[0])
    return before + marks[0] + text + marks[1] + rest.split(marks[1])[1]


def fill_markdown(template, options, commands, knobs):
    template = replace_between(template, MARKS, markdown_table(options, commands))
    return replace_between(template, KNOB_MARKS, knob_table(knobs))


def main():
    root, template_path, output = sys.argv[1:]
    scopes = load_scopes(root)
    options, commands = load_options(root, scopes), load_commands(root, scopes)
    with open(template_path, encoding="utf-8") as f:
        template = f.read()
    if template_path.endswith(".md"):
        text = fill_markdown(template, options, commands, load_knobs(root))
    elif template_path.endswith(".bash.in"):
        text = fill_bash(template, options, commands, root)
    else:
        text = fill_man(template, options, commands)
    with open(output, "w", encoding="utf-8") as f:
        f.write(text)


if __name__ == "__main__":
    main()
