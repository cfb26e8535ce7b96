#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# host_memory_cgroup.sh - in a cgroup with a limit of memory plans keep the limit, and the program is not killed
#
# The cgroup is a real one, of version 2 or 1, made for this test and removed at its end. The program takes the host
# memory that a real driver keeps for evicted data (host_memory_app.c).

: "${top_srcdir:=.}" "${top_builddir:=.}" "${SANITIZE=}"
. "$top_srcdir/tests/tap.sh"

app=$top_builddir/tests/runtime/host_memory_app
if [ ! -e "$top_builddir/standin/libcuda.so.1" ] || [ ! -x "$app" ]; then
	skip_all "the stand-in driver was not built"
fi
[ -z "$SANITIZE" ] || skip_all "sanitizers take more memory than the limit"
limit=$((112 << 20)) # the plan without one evicts that much, and the process takes more

# --- the cgroup ------------------------------------------------------------------------------------------------------

group=

# The processes in it are of this test.
remove_group() {
	local pids i
	[ -n "$group" ] || return 0
	for ((i = 0; i < 100; i++)); do
		mapfile -t pids < <(cat "$group"/*/cgroup.procs "$group/cgroup.procs" 2>/dev/null)
		[ ${#pids[@]} = 0 ] || kill -KILL "${pids[@]}" 2>/dev/null
		rmdir "$group"/*/ 2>/dev/null
		rmdir "$group" 2>/dev/null && return 0
		sleep 0.1
	done
	diag "$group is left"
}
trap 'remove_group; rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM HUP

enter() { # GROUP COMMAND...: in a cgroup
	(echo "$BASHPID" >"$1/cgroup.procs" && shift && "$@")
}

# Nothing is swapped. In version 1 the limit with swap is never the lower one.
limit_group() { # GROUP BYTES: 0: the limit holds for programs
	local with_swap=$1/memory.memsw.limit_in_bytes
	[ -w "$1/$most" ] || return 1
	[ ! -e "$1/memory.swap.max" ] || echo 0 >"$1/memory.swap.max"
	[ ! -e "$with_swap" ] || echo "$2" >"$with_swap"
	echo "$2" >"$1/$most" && enter "$1" true || return 1
	[ ! -e "$with_swap" ] || echo "$2" >"$with_swap"
} 2>/dev/null

make_group() { # FOLDER: a cgroup below one
	group=$1/umadvise-test.$$
	mkdir "$group" 2>/dev/null && limit_group "$group" $limit && return 0
	[ ! -d "$group" ] || rmdir "$group"
	group=
	return 1
}

# The own cgroup comes second: in version 2 one with processes has no children with limits.
while read -r type top mount; do
	if [ "$type" = cgroup2 ]; then
		most=memory.max own=$(sed -n 's/^0:://p' /proc/self/cgroup)
	else
		most=memory.limit_in_bytes own=$(sed -n 's/^[0-9]*:[^:]*memory[^:]*://p' /proc/self/cgroup)
	fi
	make_group "$mount" || make_group "$mount${own#"${top%/}"}" && break
done < <(awk '{
	for (i = 7; $i != "-"; i++);
	if ($(i + 1) == "cgroup2" || ($(i + 1) == "cgroup" && $(i + 3) ~ /memory/))
		print $(i + 1), $4, $5
}' /proc/self/mountinfo)
[ -n "$group" ] || skip_all "no cgroup with a limit of memory can be made here"

# --- the program -----------------------------------------------------------------------------------------------------

# The device has room for all, so only hints evict.
dryrun() { # HOST-MEMORY COMMAND-BEFORE...
	local host=$1
	shift
	UMADVISE_BUDGET=80MiB UMADVISE_HOST_MEMORY="$host" "$@" "$UMADVISE" dryrun -o "$tmp/report" "$app" 2>"$tmp/err"
}
plan() { sed -n 's/^plan //p' <<<"$1"; }
line() { # GROUP: the one that names its limit
	echo "^umadvise: host memory: evicted data would take $(plan "$free") MiB, [0-9]+ MiB are available" \
		"\($most of cgroup $1\): the plan is limited to [0-9]+ MiB\$"
}

free=$(dryrun none command)
ok "without a limit the plan evicts more than the cgroup allows ($(plan "$free") MiB)" \
	test "$(plan "$free")" -ge $((limit >> 20))
out=$(dryrun none enter "$group")
is "$? $out" "137 " "in the cgroup a program with that plan is killed"
out=$(dryrun detect enter "$group")
is "$?" 0 "a program that keeps the cgroup's limit ends as usual"
like "$(cat "$tmp/err")" "$(line "[^ ]*${group##*/}")" "one line names the cgroup's limit"
is "$(wc -l <"$tmp/err")" 1 "nothing else is said"
ok "the plan evicts less ($(plan "$out") MiB)" test "$(plan "$out")" -gt 0 -a "$(plan "$out")" -lt "$(plan "$free")"
is "$(head -n 1 <<<"$out")" "$(head -n 1 <<<"$free")" "its results are the same"

# A container's mount shows the cgroups of the container only, while /proc/self/cgroup has the whole name.
in_container() {
	unshare -m bash -c 'mount --make-rprivate / && mount --bind "$0" "$1" && shift 1 && exec "$@"' \
		"$group" "${group%/*}" "$@"
}
if in_container true 2>/dev/null && mkdir "$group/step" && limit_group "$group" $((1 << 40)) &&
	limit_group "$group/step" $limit; then
	out=$(dryrun detect enter "$group/step" in_container)
	is "$? $(head -n 1 <<<"$out")" "0 $(head -n 1 <<<"$free")" "a program in a container ends as usual"
	like "$(cat "$tmp/err")" "$(line /step)" "the limit of a cgroup in the container is found"
else
	skip 2 "no mount of a container can be made here"
fi
tap_done
