#!/usr/bin/env bash
# Builds baton and passes the tests.
#
#   tests/run.sh             the whole suite; as root some of it as an unprivileged user, too or instead
#   tests/run.sh --asan      the suite under AddressSanitizer and UndefinedBehaviorSanitizer
#   tests/run.sh --build     builds, and runs nothing
#   tests/run.sh --peers     also one job against a model server that we did not write (needs npm)
#
# Options combine with suite names: tests/run.sh base handoff. The last line counts executed tests.
set -uo pipefail
cd "$(dirname "$0")/.."

asan=0
build_only=0
peers=0
suites=()
for arg in "$@"; do
	case "$arg" in
	--asan) asan=1 ;;
	--build) build_only=1 ;;
	--peers) peers=1 ;;
	--help | -h) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 0 ;;
	-*) echo "run.sh: unknown option '$arg'; see tests/run.sh --help" >&2; exit 2 ;;
	*) suites+=("$arg") ;;
	esac
done

./.ci/install-deps || exit 1

build=build
options=(--werror)
if [ $asan = 1 ]; then
	build=build-asan
	# Without -Werror: with sanitizers gcc warns of paths that cannot be taken. What they look for does not depend on
	# -O2 and stack traces need no more than -g1; both halve the compiler's work.
	options=(-Db_sanitize=address,undefined -Db_lundef=false -Doptimization=1 -Dc_args=-g1)
	# A quarantine of 16 MB instead of 256: what goes through it is memory that the kernel has to give anew, a third of
	# the simulator's time.
	export ASAN_OPTIONS=abort_on_error=0:detect_leaks=1:allocator_may_return_null=1:quarantine_size_mb=16:malloc_context_size=10
	export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
fi
scratch=$(mktemp -d)
fast=
trap 'rm -rf "$scratch" "$fast"' EXIT

# Tests wait for the disk that syncs their small files as long as they compute. Their folders lie in memory where that
# has room and lets programs run; the repetition as an unprivileged user stays on the disk, so that both are tried.
make_fast_folder() {
	local free
	free=$(df --output=avail -k /dev/shm 2>/dev/null | tail -1)
	[ -z "${TMPDIR:-}" ] && [ "${free:-0}" -gt 4000000 ] && fast=$(mktemp -d /dev/shm/baton-tests-XXXXXX) || return 0
	chmod 755 "$fast"
	printf '#!/bin/sh\n' >"$fast/program" && chmod 755 "$fast/program"
	"$fast/program" 2>/dev/null || { rm -rf "$fast"; fast=; }
}

# gcc's own way to link the sanitizers is a shared library that takes longer to load than most programs of the suite
# take to run. gold, which comes with binutils, needs half of the time for it. At a fixed address there is nothing to
# relocate: 160,000 places in baton at each start, a sixth of what a start costs.
add_sanitizer_linking() {
	local flags
	for flags in "-static-libasan -static-libubsan -fuse-ld=gold -no-pie" "-static-libasan -static-libubsan"; do
		echo 'int main(void) { return 0; }' |
			${CC:-cc} -x c - -fsanitize=address,undefined $flags -o "$scratch/try" 2>/dev/null || continue
		options+=("-Dc_link_args=$flags")
		return
	done
}

if [ ! -f $build/build.ninja ]; then
	[ $asan = 0 ] || add_sanitizer_linking
	meson setup "${options[@]}" $build >"$scratch/setup.log" 2>&1 || { tail -40 "$scratch/setup.log"; exit 1; }
fi
ninja -C $build >"$scratch/ninja.log" 2>&1 || { tail -60 "$scratch/ninja.log"; exit 1; }
[ $build_only = 1 ] && exit 0

passed=0
failed=0
skipped=0
left_out=0 # run by the plain suite alone, by choice: tests/integration/README.md
at_once=$(($(nproc) + 2)) # two more than there are processors: there are always some that wait

# Adds up what cmocka and meson say in a log: "[  PASSED  ] 3 test(s)", and test programs without cmocka.
count_log() {
	local counts
	counts=$(python3 tests/count-tests.py "$@") || return 1
	read -r p f s l <<<"$counts"
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s)) left_out=$((left_out + l))
}

run_suite() {
	local args=(test -C $build --no-rebuild --print-errorlogs --num-processes $at_once --timeout-multiplier $((1 + 2 * asan)))
	for suite in "${suites[@]}"; do args+=(--suite "$suite"); done
	[ $unprivileged = 0 ] || args+=(--no-suite unprivileged) # not as root: run_unprivileged has them
	make_fast_folder
	TMPDIR=${fast:-${TMPDIR:-/tmp}} meson "${args[@]}" >"$scratch/test.log" 2>&1
	local status=$?
	grep -vE ' (OK|SKIP) +[0-9.]+s' "$scratch/test.log" | tail -${TAIL_LINES:-400}
	count_log $build/meson-logs/testlog.json || status=1
	return $status
}

# As root the process, worktree and box tests run a second time as nobody, from a copy that nobody can read; those of
# suite unprivileged run only here.
run_unprivileged() {
	local home=$scratch/nobody
	chmod 755 "$scratch"
	mkdir -p "$home/tmp"
	cp -r $build "$home/build"
	chown -R 65534:65534 "$home"
	[ -z "$fast" ] || { mkdir "$fast/nobody" && chown 65534:65534 "$fast/nobody"; }
	python3 tests/run-unprivileged.py $build "$home" ${fast:+"$fast/nobody"} >"$scratch/nobody.log" 2>&1
	local status=$?
	cat "$scratch/nobody.log"
	count_log --cmocka "$scratch/nobody.log" || status=1
	return $status
}

unprivileged=0
[ "$(id -u)" -eq 0 ] && [ $asan = 0 ] && [ ${#suites[@]} -eq 0 ] && unprivileged=1
status=0
run_suite || status=1
if [ $unprivileged = 1 ]; then
	echo "== as an unprivileged user: processes, worktrees, box, and what root does not run"
	run_unprivileged || status=1
fi
if [ $peers = 1 ]; then
	if command -v npm >/dev/null; then
		tests/integration/peers.sh $build && passed=$((passed + 1)) || { failed=$((failed + 1)); status=1; }
	else
		echo "peers: npm is missing, skipped"
		skipped=$((skipped + 1))
	fi
fi
[ $failed -gt 0 ] && status=1
[ $passed -eq 0 ] && { echo "no test ran"; status=1; }
[ $left_out = 0 ] || echo "$left_out tests are not run under the sanitizers, by choice; the plain suite has them"
echo "$passed passed, $failed failed, $skipped skipped"
exit $status
