#!/usr/bin/env python3
"""Makes a C table of Markdown files: embed_roles.py OUTPUT FILE..."""
import os
import sys


def literal(data):
    lines = []
    for line in data.decode("utf-8").splitlines(keepends=True):
        escaped = line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
        lines.append(f'\t  "{escaped}"')
    return "\n".join(lines)


def main():
    out = ['#include "orchestrator/config/builtin_roles.h"', "", "const struct builtin_role builtin_roles[] = {"]
    for path in sys.argv[2:]:
        name = os.path.splitext(os.path.basename(path))[0]
        with open(path, "rb") as f:
            data = f.read()
        out.append(f'\t{{ "{name}",\n{literal(data)},\n\t  {len(data)} }},')
    out += ["};", f"const size_t builtin_roles_count = {len(sys.argv) - 2};", ""]
    with open(sys.argv[1], "w") as f:
        f.write("\n".join(out))


main()
