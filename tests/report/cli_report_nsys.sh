#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# umadvise report of a .nsys-rep: nsys exports it, here a stand-in of a few lines; nothing is left behind.
. "${top_srcdir:=.}/tests/tap.sh"

mkdir "$tmp/bin" "$tmp/tmp"
export TMPDIR=$tmp/tmp
cat >"$tmp/few.umtrace" <<'END'
{"umtrace":1,"source":"by hand","workload":"few"}
{"ev":"alloc","t":0,"bytes":4194304,"name":"x","role":"param"}
{"ev":"iter","n":0}
{"ev":"op","name":"a","r":[0],"w":[0],"ns":1000}
END
ok "a workload is exported" "$UMADVISE" simulate "$tmp/few.umtrace" --strategy on-demand --export "$tmp/run.sqlite"
cp "$tmp/run.sqlite" "$tmp/run.nsys-rep"

# Programs in the place of nsys: called with "export --type sqlite --force-overwrite true -o OUT IN".
program() { # NAME; its commands come from standard input
	{
		printf '#!%s\n' "$BASH"
		cat
	} >"$tmp/bin/$1"
	chmod +x "$tmp/bin/$1"
}
program nsys <<'END'
[ "$1 $2 $3" = "export --type sqlite" ] && cp "$8" "$7"
END
program broken <<'END'
echo starting
echo "Importer error: no such version" >&2
: >"$7"
exit 1
END
program lazy <<'END'
exit 0
END
program endless <<END
: >"\$7"
: >"\$7-journal"
: >"$tmp/begun"
exec sleep 60
END
left() { ls -A "$tmp/tmp"; }

report() { "$UMADVISE" report "$@" --format json; }
report "$tmp/run.sqlite" | sed 1,2d >"$tmp/want.json"
ok "there is something to compare with" test -s "$tmp/want.json"
is "$(PATH=$tmp/bin:$PATH report "$tmp/run.nsys-rep" | sed 1,2d | cmp - "$tmp/want.json")" "" \
	"the nsys in PATH exports it"
is "$(report "$tmp/run.nsys-rep" --nsys "$tmp/bin/nsys" | sed 1,2d | cmp - "$tmp/want.json")" "" \
	"the nsys that --nsys names is run"
like "$(report "$tmp/run.nsys-rep" --nsys "$tmp/bin/nsys" | sed -n 2p)" '/run.nsys-rep"' "the file keeps its name"
is "$(left)" "" "nothing is left"

refused() { # NAME PROGRAM PATTERN
	local out rc=0
	out=$(report "$tmp/run.nsys-rep" --nsys "$2" 2>&1) || rc=$?
	is "$rc $(printf '%s\n' "$out" | wc -l)" "3 1" "$1: status and lines"
	like "$out" "$3" "$1: the reason"
	is "$(left)" "" "$1: nothing is left"
}
refused "no nsys" "$tmp/bin/none" "run 'nsys export --type sqlite $tmp/run.nsys-rep'"
refused "it fails" "$tmp/bin/broken" "failed: Importer error: no such version"
refused "it makes nothing" "$tmp/bin/lazy" "failed"
fails 3 "a report that is not there" report "$tmp/gone.nsys-rep"
printf 'QD raw' >"$tmp/raw.qdstrm"
like "$(report "$tmp/raw.qdstrm" 2>&1)" "is a raw recording" "a raw recording is refused"

"$UMADVISE" report "$tmp/run.nsys-rep" --nsys "$tmp/bin/endless" 2>/dev/null &
pid=$!
until [ -e "$tmp/begun" ] || ! kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
kill -TERM "$pid"
rc=0
wait "$pid" || rc=$?
is "$rc" 143 "a signal ends it"
is "$(left)" "" "nothing is left then, either"
tap_done
