#!/usr/bin/env python3
"""Keys and sockets (I1): no key in any process but the gateway, none to be read from an agent's shell, and no
network socket but the gateway's. Looked at while an agent works, from outside and from inside its box.
"""
import os
import re
import socket

from rig import answer, check, command_of, descendants, equal, in_turn, main, report, shell, test, test_plain

KEY = "sk-test-6f1d7a0b9c3e5f24"
HANG = "mkfifo fifo; touch started; read -r x <>fifo"
PEEK = """
cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>errors.txt | tr '\\0' '\\n' >all.txt
cat /proc/[0-9]*/{mem,maps,fd/3,fd/4,fd/5} >>errors.txt 2>&1
env >env.txt
cat "$HOME"/.config/baton/keys.yaml "$XDG_CONFIG_HOME"/baton/keys.yaml %s >keys.txt 2>&1
true
"""


def start(world, *before_it, api="anthropic"):
    world.repository()
    rules = in_turn(*before_it, answer(shell(HANG)), answer(report()))
    world.scenario_server = world.server(rules)
    world.provider(world.scenario_server.url, api, KEY)
    started = world.start("run", "look", "--model", "fake/some-model", "--window", "200k")
    run = world.wait_run(started)
    world.wait_tool(run, "started")
    return started, run


def finish(world, started, run):
    world.command("bash", "-c", "echo >fifo", cwd=run.worktree())
    equal(started.wait(40).status, 0, "exit status")


SHADOW = 4 << 30  # AddressSanitizer maps terabytes of shadow; no program of ours maps so much of its own


def memory_holds(pid, needle):
    """Looks through all readable memory of a process; needs to be its tracer or root."""
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as maps, open(f"/proc/{pid}/mem", "rb") as mem:
        for line in maps:
            match = re.match(r"([0-9a-f]+)-([0-9a-f]+) r", line)
            if not match or "[v" in line:
                continue
            first, last = (int(n, 16) for n in match.groups())
            if last - first > SHADOW:
                continue
            if region_holds(mem, first, last, needle):
                return line.strip()
    return None


def is_sanitized(pid):
    """Whether its library is shared or linked into the program."""
    with open(f"/proc/{pid}/exe", "rb") as program:
        return b"__asan_init" in program.read()


def region_holds(mem, first, last, needle):
    """Reads a mapping in pieces that overlap by the length of what is sought."""
    step, at = 16 << 20, first
    while at < last:
        try:
            mem.seek(at)
            if needle in mem.read(min(step + len(needle), last - at)):
                return True
        except (OSError, ValueError, OverflowError):
            return False
        at += step
    return False


def open_files(pid):
    """Descriptors of a process. None where not even its own user may look: it is not dumpable."""
    try:
        return os.listdir(f"/proc/{pid}/fd")
    except PermissionError:
        check(os.geteuid() != 0, "root may look at everything")
        return None


def sockets_of(pid):
    """Kinds of the sockets that a process holds: {'unix'} or also 'tcp', 'tcp6', 'udp', 'raw', 'packet', 'netlink'."""
    wanted, found = set(), set()
    for fd in open_files(pid) or []:
        try:
            match = re.match(r"socket:\[(\d+)\]", os.readlink(f"/proc/{pid}/fd/{fd}"))
        except OSError:
            continue
        if match:
            wanted.add(match.group(1))
    for kind in ("unix", "tcp", "tcp6", "udp", "udp6", "raw", "raw6", "packet", "netlink", "icmp"):
        try:
            with open(f"/proc/{pid}/net/{kind}", encoding="utf-8") as f:
                numbers = {w for line in f for w in line.split()}
        except OSError:
            continue
        if wanted & numbers:
            found.add(kind)
            wanted -= numbers
    return found | ({"unknown"} if wanted else set())


def everyone(world, started, run):
    """{name: [pid]} of all processes of the run, the tools too."""
    found = run.children()
    found["warden"], found["parent"] = [started.pid], [run.pid()]
    return found


@test
def no_key_in_environment_or_arguments(world):
    started, run = start(world)
    for name, pids in everyone(world, started, run).items():
        for pid in pids:
            check(KEY not in command_of(pid), f"the key is an argument of {name}")
            try:
                with open(f"/proc/{pid}/environ", "rb") as f:
                    check(KEY.encode() not in f.read(), f"the key is in the environment of {name}")
            except PermissionError:
                pass  # not even its own user can look: that is the point
    finish(world, started, run)


@test_plain
def no_key_in_the_memory_of_anybody_but_the_gateway(world):
    if os.geteuid() != 0:
        print("not looked at: nobody but root can read the memory of processes that are not dumpable")
        return
    started, run = start(world)
    places = everyone(world, started, run)
    if is_sanitized(places["baton-gateway"][0]):
        print("not looked at: AddressSanitizer keeps a copy of the environment that it was started with")
        finish(world, started, run)
        return
    equal(bool(memory_holds(places["baton-gateway"][0], KEY.encode())), True, "the key is found in the gateway (the search works)")
    for name, pids in places.items():
        for pid in pids if name != "baton-gateway" else []:
            equal(memory_holds(pid, KEY.encode()), None, f"memory of {name}")
    finish(world, started, run)


@test_plain
def no_key_is_written_to_disk(world):
    started, run = start(world)
    finish(world, started, run)
    for top in (world.repo, world.path("state"), world.path("home"), world.path("cache"), world.path("tmp")):
        for folder, _, files in os.walk(top):
            for name in files:
                path = os.path.join(folder, name)
                if os.path.isfile(path) and not os.path.islink(path):
                    with open(path, "rb") as f:
                        check(KEY.encode() not in f.read(), f"the key stands in {path}")


@test_plain
def the_shell_of_an_agent_finds_no_key(world):
    world.write("config/baton/keys.yaml", f"other: {KEY}\n", 0o600)
    keys = world.path("config/baton/keys.yaml")
    started, run = start(world, answer(shell(PEEK % keys)))
    texts = {}
    for name in ("all.txt", "errors.txt", "env.txt", "keys.txt"):
        with open(os.path.join(run.worktree(), name), "rb") as f:
            texts[name] = f.read()
    for name, text in texts.items():
        check(KEY.encode() not in text, f"the shell read the key ({name})", text[-600:])
    check(b"PATH=" in texts["env.txt"], "env printed nothing (the test looks at nothing)")
    names = {line.partition(b"=")[0] for line in texts["env.txt"].split(b"\n")}
    for name in names:
        check(b"API_KEY" not in name and b"FAKE" not in name, "an environment variable of the user reached the shell", name)
    finish(world, started, run)


@test_plain
def only_the_gateway_has_network_sockets(world):
    started, run = start(world)
    places = everyone(world, started, run)
    rehearsal = places.pop("baton-rehearse", [])
    equal(rehearsal, [], "no rehearsal server of the run's own")
    for pid in places.pop("baton-gateway"):
        check(open_files(pid) is None or "tcp" in sockets_of(pid), "the gateway holds a connection (the search works)", sockets_of(pid))
    check("agent" in places and "baton-git" in places and "parent" in places, "processes", places)
    for name, pids in places.items():
        for pid in pids:
            check(sockets_of(pid) <= {"unix"}, f"network sockets of {name}", sockets_of(pid))
    finish(world, started, run)


@test_plain
def the_gateway_has_nothing_of_the_repository_open(world):
    started, run = start(world)
    gateway = run.children()["baton-gateway"][0]
    if os.geteuid() != 0:
        equal((open_files(gateway), open_files(run.pid())), (None, None), "descriptors of gateway and parent that their own user sees")
        finish(world, started, run)
        return
    links = [os.readlink(f"/proc/{gateway}/fd/{fd}") for fd in os.listdir(f"/proc/{gateway}/fd")]
    check(not [t for t in links if t.startswith(world.repo) or t.startswith(run.worktree())], "open files of the gateway", links)
    with open(f"/proc/{gateway}/maps", encoding="utf-8") as f:
        text = f.read()
    for library in ("libgit2", "libfyaml"):
        check(library not in text, f"the gateway loads {library}")
    for pid in run.children()["agent"] + [run.pid(), started.pid]:
        with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
            text = f.read()
        for library in ("libcurl", "libssl", "libgit2"):
            check(library not in text, f"{command_of(pid)} loads {library}")
    finish(world, started, run)


CONNECT = r"""
use Socket qw(:DEFAULT inet_pton pack_sockaddr_in6);
sub try_it { my ($what, $domain, $kind, $to) = @_;
	my $made = socket(my $s, $domain, $kind, 0);
	print $what, $made && connect($s, $to) ? " connected\n" : " refused: $!\n"; }
try_it("tcp", AF_INET, SOCK_STREAM, pack_sockaddr_in(%d, inet_aton("127.0.0.1")));
try_it("udp", AF_INET, SOCK_DGRAM, pack_sockaddr_in(%d, inet_aton("127.0.0.1")));
try_it("tcp6", AF_INET6, SOCK_STREAM, pack_sockaddr_in6(%d, inet_pton(AF_INET6, "::1")));
try_it("unix", AF_UNIX, SOCK_STREAM, pack_sockaddr_un("%s"));
"""


@test_plain
def a_shell_cannot_reach_the_network_or_our_sockets(world):
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(world.path("socket"))
        unix.listen()
        os.chmod(world.path("socket"), 0o777)
        port = tcp.getsockname()[1]
        program = CONNECT % (port, port, port, world.path("socket"))
        equal(world.command("/usr/bin/perl", "-e", program, cwd=world.dir).out.count("connected"), 3,
              "attempts outside the box that connect (tcp, udp, unix)")
        started, run = start(world, answer(shell(f"cat >net.pl <<'END'\n{program}\nEND\n/usr/bin/perl net.pl >net.txt 2>&1")))
        finish(world, started, run)
    text = world.git("show", f"{run.branch()}:net.txt")
    equal(text.count("refused"), 4, "attempts from the box that were refused", text)


@test
def a_wrong_key_is_told_and_not_shown(world):
    world.repository()
    server = world.server(in_turn(answer(report())), require_key=True)
    world.provider(server.url, key=KEY)
    world.env.pop("FAKE_API_KEY")
    done = world.baton("run", "x", "--model", "fake/m", "--window", "200k", status=2)
    check("FAKE_API_KEY" in done.err and "keys.yaml" in done.err, "the message does not say what to do", done)
    world.provider(server.url, auth="none", key=KEY)
    done = world.baton("run", "x", "--model", "fake/m", "--window", "200k", status=3)
    check("401" in done.out + done.err or "auth" in (done.out + done.err).lower(), "the reason is not told", done)
    check(KEY not in done.out + done.err, "the key is printed", done)


@test
def a_key_file_works_and_must_be_private(world):
    world.repository()
    server = world.server(in_turn(answer(report())), require_key=True)
    world.provider(server.url, key=KEY)
    world.env.pop("FAKE_API_KEY")
    path = world.write("config/baton/keys.yaml", f"fake: {KEY}\n", 0o644)
    done = world.baton("run", "x", "--model", "fake/m", "--window", "200k", status=2)
    check("chmod 600" in done.err, "the message", done)
    os.chmod(path, 0o600)
    world.baton("run", "x", "--model", "fake/m", "--window", "200k")


main()
