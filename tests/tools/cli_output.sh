#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Where the tool's output goes: every verb keeps the same rule for files, links, FIFOs, devices and folders, never
# writes onto an input, and leaves nothing behind when it is ended.
. "${top_srcdir:=.}/tests/tap.sh"

export LC_ALL=C
t=$tmp/in.umtrace
{
	echo '{"umtrace":1,"workload":"small"}'
	for i in 0 1 2 3; do echo "{\"ev\":\"alloc\",\"t\":$i,\"bytes\":4194304,\"name\":\"w$i\"}"; done
	for n in 0 1 2 3 4; do
		echo "{\"ev\":\"iter\",\"n\":$n}"
		for i in 0 1 2 3; do echo "{\"ev\":\"op\",\"name\":\"k$i\",\"ns\":1000000,\"r\":[$i],\"w\":[$i]}"; done
	done
} >"$t"
p=$tmp/in.umplan r=$tmp/in.sqlite
ok "a plan is made" "$UMADVISE" plan "$t" --oversubscribe 1.5 -o "$p"
ok "an export is made" "$UMADVISE" simulate "$t" --oversubscribe 1.5 --strategy on-demand --export "$r"

# One output of each kind to the path $2.
verbs="simulate export timeline plan show svg plan-timeline pool pool-svg report trace diff"
write() {
	case $1 in
	simulate) "$UMADVISE" simulate "$t" --oversubscribe 1.5 --strategy on-demand --format csv -o "$2" ;;
	export) "$UMADVISE" simulate "$t" --oversubscribe 1.5 --strategy on-demand --export "$2" ;;
	timeline) ln -sfn "$2" "$tmp/link.json" && "$UMADVISE" simulate "$t" --oversubscribe 1.5 --strategy on-demand \
		--export "$tmp/link.json" ;;
	plan) "$UMADVISE" plan "$t" --oversubscribe 1.5 -o "$2" ;;
	show) "$UMADVISE" plan --show "$p" -o "$2" ;;
	svg) "$UMADVISE" plan --show "$p" --svg "$2" ;;
	plan-timeline) "$UMADVISE" plan --show "$p" --timeline "$2" ;;
	pool) "$UMADVISE" pool "$t" -o "$2" ;;
	pool-svg) "$UMADVISE" pool "$t" --svg "$2" ;;
	report) "$UMADVISE" report "$r" -o "$2" ;;
	trace) "$UMADVISE" report "$r" --format perfetto -o "$2" ;;
	diff) "$UMADVISE" diff "$r" "$r" -o "$2" ;;
	esac
}

kind() { stat -c %F "$1"; }
d=$tmp/d
mkdir "$d"

for v in $verbs; do
	ok "$v: a new file is written" write "$v" "$d/new"
	ok "$v: the new file is not empty" test -s "$d/new"
	echo before >"$d/old"
	chmod 604 "$d/old"
	echo mine >"$d/old.tmp"
	ok "$v: an existing file is replaced" write "$v" "$d/old"
	ok "$v: it has what the new file has" cmp "$d/new" "$d/old"
	is "$(stat -c %a "$d/old")" 604 "$v: it keeps its permissions"
	is "$(cat "$d/old.tmp")" mine "$v: a file of its name with .tmp stays"

	ln -s victim "$d/planted.tmp"
	echo theirs >"$d/victim"
	ok "$v: a link of the name with .tmp changes nothing" write "$v" "$d/planted"
	is "$(cat "$d/victim")" theirs "$v: what that link names stays"

	ln -s old "$d/link"
	echo before >"$d/old"
	ok "$v: a link is written through" write "$v" "$d/link"
	is "$(kind "$d/link")" "symbolic link" "$v: the link stays"
	ok "$v: the file that it names is replaced" cmp "$d/new" "$d/old"
	ln -s late "$d/dangling"
	ok "$v: a dangling link is written through" write "$v" "$d/dangling"
	is "$(kind "$d/dangling")" "symbolic link" "$v: the dangling link stays"
	ok "$v: the file that it names is made" cmp "$d/new" "$d/late"

	mkfifo "$d/fifo"
	cat "$d/fifo" >"$d/read" &
	ok "$v: a FIFO is written" write "$v" "$d/fifo"
	wait $!
	is "$(kind "$d/fifo")" fifo "$v: the FIFO stays"
	ok "$v: its reader has the whole output" cmp "$d/new" "$d/read"

	mkdir "$d/folder"
	write "$v" "$d/folder" >/dev/null 2>"$tmp/said"
	ok "$v: a folder is refused" test $? -ge 2
	like "$(cat "$tmp/said")" 'folder: .*([Dd]irectory|cannot)|link.json: cannot' "$v: the folder is named"

	write "$v" /dev/full >/dev/null 2>"$tmp/said"
	is $? 4 "$v: a full device is an error"
	like "$(cat "$tmp/said")" 'No space left' "$v: the error is said"
	is "$(grep -c . "$tmp/said")" 1 "$v: in one line"
	if [ "$(id -u)" = 0 ] && mknod "$d/null" c 1 3 2>/dev/null; then
		ok "$v: a device node is written" write "$v" "$d/null"
		is "$(kind "$d/null")" "character special file" "$v: the device node stays"
	else
		skip 2 "only root can make a device node"
	fi
	node=$([ ! -e "$d/null" ] || echo "null ")
	is "$(cd "$d" && echo .[!.]* *)" \
		".[!.]* dangling fifo folder late link new ${node}old old.tmp planted planted.tmp read victim" \
		"$v: nothing else is left in the folder"
	rm -rf "$d"
	mkdir "$d"
done

# Inputs stay.
cp "$t" "$d/trace"
cp "$p" "$d/plan"
cp "$r" "$d/run"
ln "$d/trace" "$d/hard"
ln -s trace "$d/soft"
spared() { # FILE COMMAND...: it is refused in one line, and the file stays
	local sum file=$1
	sum=$(cksum <"$d/$file")
	shift
	"$UMADVISE" "$@" >"$tmp/said" 2>&1
	is "$? $(grep -c 'is the same file as' "$tmp/said") $(grep -c . "$tmp/said")" "2 1 1" \
		"refused in one line: ${*//$tmp\//}"
	is "$(cksum <"$d/$file")" "$sum" "the input stays"
}
for name in trace hard soft; do
	spared trace simulate "$d/trace" -o "$d/$name"
	spared trace simulate "$d/trace" --strategy on-demand --export "$d/$name"
	spared trace plan "$d/trace" -o "$d/$name"
	spared trace plan "$d/trace" -o "$d/x" --svg "$d/$name"
done
spared trace simulate "$t" "$d/trace" -o "$d/trace"
spared plan simulate "$d/trace" --plan "$d/plan" -o "$d/plan"
spared plan plan --show "$d/plan" --svg "$d/plan"
spared plan plan --show "$d/plan" -o "$d/plan"
spared plan plan --diff "$p" "$d/plan" -o "$d/plan"
spared plan plan --show "$d/plan" --timeline "$d/plan"
spared run report "$d/run" -o "$d/run"
spared run report "$d/run" --format perfetto -o "$d/run"
spared run diff "$r" "$d/run" -o "$d/run"
cp /bin/true "$d/true"
spared true dryrun -o "$d/true" -- "$d/true"
spared true dryrun --log "$d/true" -- "$d/true"
rm -rf "$d"
mkdir "$d"

# Ended in the middle. The workload is long; the signal comes when the temporary is open, with or without a name.
busy() { # PID: has it opened a temporary in $d?
	local i
	for ((i = 0; i < 600; i++)); do
		# shellcheck disable=SC2010 # links
		ls -l "/proc/$1/fd" 2>/dev/null | grep -q -- "-> $d/" && return
		kill -0 "$1" 2>/dev/null || return
		sleep 0.05
	done
	return 1
}

for v in simulate export timeline; do
	for sig in INT TERM HUP KILL; do
		[ "$v $sig" != "timeline KILL" ] || continue # its scratch file has a name while it is made
		case $v in
		simulate) to="-o $d/out" ;;
		export) to="--export $d/out" ;;
		timeline) to="--export $d/out.json" ;;
		esac
		# A background job ignores SIGINT, and what nohup started SIGHUP. A run that a signal does not end is
		# killed after a minute, so that the test fails and does not go on.
		# shellcheck disable=SC2086 # words
		TMPDIR=$d env --default-signal=INT,HUP "$UMADVISE" simulate "$t" --strategy on-demand \
			--oversubscribe 1.5 --iterations 1000000 $to >/dev/null 2>&1 &
		pid=$!
		ok "$v: is at work when SIG$sig comes" busy $pid
		sleep 0.3 # until scratch files, SQLite's among them, have no name any more
		kill -$sig $pid
		timeout 60 tail -s 0.05 --pid=$pid -f /dev/null || kill -KILL $pid
		wait $pid
		is "$? $(ls -A "$d")" "$((128 + $(kill -l $sig))) " "$v: SIG$sig ends it and leaves nothing"
	done
done

# A file size limit.
for v in export plan svg; do
	(ulimit -f 1 && write "$v" "$d/out") >/dev/null 2>"$tmp/said"
	is "$? $(grep -c . "$tmp/said")" "4 1" "$v: a file size limit is an error in one line"
	is "$(ls -A "$d")" "" "$v: and leaves nothing"
done
tap_done
