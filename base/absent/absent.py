#!/usr/bin/env python3
"""Makes the source of a library that stands in for one that a program loads and never calls.

    absent.py --find NAME...           prints "NAME PATH" for those that the linker knows
    absent.py LIBRARY OUT.c OUT.map    every exported symbol of LIBRARY, and its versions

Each function ends the process with a message, but for those of START, which libraries call when they are
initialised; data is zero.
"""
import re
import subprocess
import sys

START = {"libssh2_init", "libssh2_exit"}

HEAD = """/* Made by base/absent/absent.py, which says why. */
#include <stdio.h>
#include <stdlib.h>

long absent_call(void);
long absent_call(void)
{
	fputs("baton: a library was called that this program does without (base/absent)\\n", stderr);
	abort();
}

long absent_start(void);
long absent_start(void)
{
	return 0;
}

"""


def find(names):
    for name in names:
        path = subprocess.run(["cc", f"-print-file-name={name}"], capture_output=True, text=True).stdout.strip()
        if path.startswith("/"):
            print(name, path)


def symbols(library):
    """Yields (name, version, is a function, size)."""
    out = subprocess.run(["readelf", "--dyn-syms", "-W", library], capture_output=True, text=True, check=True).stdout
    for line in out.splitlines():
        fields = line.split()
        if len(fields) < 8 or not fields[0].rstrip(":").isdigit() or fields[6] in ("UND", "ABS"):
            continue
        name, _, version = fields[7].replace("@@", "@").partition("@")
        if re.fullmatch(r"[A-Za-z_]\w*", name) and fields[3] in ("FUNC", "OBJECT", "IFUNC"):
            yield name, version, fields[3] != "OBJECT", int(fields[2], 0)


def version_nodes(library):
    out = subprocess.run(["readelf", "-V", "-W", library], capture_output=True, text=True, check=True).stdout
    part = out[out.index("Version definition section"):] if "Version definition section" in out else ""
    part = part.split("Version needs section")[0]
    return [m[1] for m in re.finditer(r"Flags: (?!BASE).*?Name: (\S+)", part)]


def write(library, source, script):
    nodes = {name: [] for name in version_nodes(library)}
    seen = set()
    with open(source, "w") as out:
        out.write(HEAD)
        for name, version, function, size in symbols(library):
            if name in seen:
                continue
            seen.add(name)
            nodes.setdefault(version, []).append(name)
            target = "absent_start" if name in START else "absent_call"
            if function:
                out.write(f'long {name}(void) __attribute__((alias("{target}")));\n')
            else:
                out.write(f"extern char {name}[];\nchar {name}[{max(size, 1)}];\n")
    plain = nodes.pop("", [])
    with open(script, "w") as out:
        for node, names in nodes.items():
            out.write(node + (" { global: " if names else " { ") + "".join(n + "; " for n in names) + "};\n")
        if not nodes:
            out.write("{ global: " + "".join(n + "; " for n in plain) + "local: *; };\n")


if __name__ == "__main__":
    if sys.argv[1] == "--find":
        find(sys.argv[2:])
    else:
        write(*sys.argv[1:])
