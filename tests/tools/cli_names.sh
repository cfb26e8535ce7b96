#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Names come from anywhere: nothing that a terminal obeys, and no formula of a spreadsheet, gets through any verb.
. "${top_srcdir:=.}/tests/tap.sh"

export LC_ALL=C.UTF-8
cd "$tmp" || exit 99

# A workload, tensors and ops whose names have every byte (from 0x80 on as characters), marks of direction and a
# formula, and a folder whose name has every byte too.
python3 - <<'END'
import json, os
low = "".join(map(chr, range(1, 128)))
high = "".join(map(chr, range(128, 256))) + "\u200e\u202e\u2066\u2028\ufeff\U0001f600"
names = [low, high, "=1+1", "+x", "-x", "@x", "\tx", "\rx", "a,\"b\"\nc", "\x1b]0;OWNED\x07\x1b[31mred"]
lines = [{"umtrace": 1, "source": "t", "workload": "=\x1b[31m\n\x9b" + high}]
for i, n in enumerate(names):
    lines.append({"ev": "alloc", "t": i, "bytes": 4194304, "name": n, "role": "param"})
for k in range(5):
    lines.append({"ev": "iter", "n": k})
    for i, n in enumerate(names):
        lines.append({"ev": "op", "name": n, "ns": 1000000, "r": [i], "w": [i]})
folder = bytes(b for b in range(1, 256) if b != ord("/"))[:250]
for path in (b"in.umtrace", folder + b"/in.umtrace"):
    if b"/" in path:
        os.mkdir(folder)
    with open(path, "w") as f:
        f.writelines(json.dumps(x) + "\n" for x in lines)
END
folder=$(echo [^i]*)

# Outputs are kept, and one script looks at all of them at the end: FORM, CELLS or not, LABEL for each.
clean() { # FORM LABEL COMMAND...: what it says on both outputs is clean
	kept=$((kept + 1))
	printf '%s\t%s\n' "$1" "$2" >>list
	"${@:3}" >"out.$kept" 2>"err.$kept"
}
cells() { # LABEL: and no text of it begins as a formula of a spreadsheet does
	printf 'cells\t%s\n' "$1" >>list
}
kept=0

cat >check.py <<'END'
import csv
def number(c):
    try: return float(c) <= 0
    except ValueError: return False

def bytes_of(name, form):
    data = open(name, "rb").read()
    allowed = set(b"\n\t" + (b"\r" if form == "csv" else b""))
    bad = {"%02x" % b for b in data if (b < 0x20 or b == 0x7f) and b not in allowed}
    try:
        text = data.decode()
        bad |= {"U+%04X" % ord(c) for c in text if 0x80 <= ord(c) < 0xa0 or c in "\u200e\u202e\u2066\u2028\ufeff"}
    except UnicodeDecodeError as e:
        bad.add(str(e))
    return bad

n = 0
for line in open("list", newline="\n"):
    form, label = line.rstrip("\n").split("\t")
    if form == "cells":
        rows = csv.reader(open("out.%d" % n, newline=""))
        bad = [c for r in rows for c in r if c and c[0] in "=+-@\t\r" and not number(c)]
        print("%s: no cell begins a formula\t%s" % (label, ascii(bad) if bad else ""))
    else:
        n += 1
        bad = bytes_of("out.%d" % n, form) | bytes_of("err.%d" % n, "text")
        print("%s: both outputs are free of control characters\t%s" % (label, " ".join(sorted(bad))))
END

one="--oversubscribe 1.5 --strategy on-demand"
n=0
for t in in.umtrace "$folder/in.umtrace"; do
	n=$((n + 1))
	# shellcheck disable=SC2086 # options
	{
		clean text "$n: simulate" "$UMADVISE" simulate "$t" $one --per-iteration
		clean csv "$n: simulate --format csv" "$UMADVISE" simulate "$t" $one --format csv
		cells "$n: simulate --format csv"
		clean text "$n: simulate --format json" "$UMADVISE" simulate "$t" $one --format json
	}
	clean text "$n: trace stat" "$UMADVISE" trace stat "$t"
	clean csv "$n: trace stat --format csv" "$UMADVISE" trace stat --format csv "$t"
	cells "$n: trace stat --format csv"
	clean text "$n: trace stat --format json" "$UMADVISE" trace stat --format json "$t"
	clean text "$n: trace check" "$UMADVISE" trace check "$t"
	clean text "$n: pool" "$UMADVISE" pool "$t"
	clean text "$n: pool --format json" "$UMADVISE" pool "$t" --format json
	clean csv "$n: pool --format csv" "$UMADVISE" pool "$t" --format csv
	cells "$n: pool --format csv"
	clean text "$n: pool --svg" "$UMADVISE" pool "$t" --svg - -o pool.txt
	to=$(dirname "$t")/p.umplan
	clean text "$n: plan" "$UMADVISE" plan "$t" --oversubscribe 1.5 -o "$to"
	clean text "$n: plan to standard output" "$UMADVISE" plan "$t" --oversubscribe 1.5 -o -
	clean text "$n: plan --show" "$UMADVISE" plan --show "$to"
	clean text "$n: plan --show --format json" "$UMADVISE" plan --show "$to" --format json
	clean text "$n: plan --show --svg" "$UMADVISE" plan --show "$to" --svg -
	clean text "$n: plan --show --timeline" "$UMADVISE" plan --show "$to" --timeline -
	clean text "$n: plan --diff" "$UMADVISE" plan --diff "$to" "$to"
	r=$(dirname "$t")/r.sqlite
	# shellcheck disable=SC2086 # options
	clean text "$n: simulate --export" "$UMADVISE" simulate "$t" $one --export "$r"
	clean text "$n: report" "$UMADVISE" report "$r"
	for table in tensors ops causes findings; do
		clean csv "$n: report --report $table --format csv" "$UMADVISE" report "$r" --report $table --format csv
		cells "$n: report --report $table --format csv"
	done
	clean text "$n: report --format json" "$UMADVISE" report "$r" --format json
	clean text "$n: report --format html" "$UMADVISE" report "$r" --format html
	clean text "$n: report --format perfetto" "$UMADVISE" report "$r" --format perfetto -o -
	for form in table csv json; do
		clean $form "$n: diff --format $form" "$UMADVISE" diff "$r" "$r" --format $form
	done
done

# Messages.
bad=$'\e[31m\a\n\r\x7f\u009b\u202e\xff'
for v in simulate plan pool report trace diff calibrate doctor dryrun; do
	clean text "$v of no such file" "$UMADVISE" "$v" "$bad" "$bad"
	clean text "$v with no such option" "$UMADVISE" "$v" "--$bad" "$bad"
	clean text "$v with an odd profile" "$UMADVISE" "$v" in.umtrace --profile "$bad"
	clean text "$v with an odd budget" "$UMADVISE" "$v" in.umtrace --budget "$bad"
	clean text "$v to an odd file" "$UMADVISE" "$v" in.umtrace -o "no/$bad"
done
clean text "no such verb" "$UMADVISE" "$bad"
for name in STRATEGY PROFILE PLAN TRACE REPORT DEVICE LOG BUDGET; do
	clean text "doctor with UMADVISE_$name" env "UMADVISE_$name=no/$bad" "$UMADVISE" doctor
	clean text "doctor --format json with UMADVISE_$name" env "UMADVISE_$name=no/$bad" "$UMADVISE" doctor -f json
	clean text "UMADVISE_$name" env "UMADVISE_$name=no/$bad" "$top_builddir/examples/vector"
done

printf '\tx\n' >"out.$((kept + 1))"
printf '=1\n' >"out.$((kept + 2))"
printf '\033x' >"err.$((kept + 1))"
: >"err.$((kept + 2))"
printf 'text\tplanted\ntext\tplanted\ncells\tplanted\n' >>list
python3 check.py >found
while IFS=$'\t' read -r label bad; do
	case $label in
	planted*) ;;
	*) is "$bad" "" "$label" ;;
	esac
done <found
is "$(grep -c '^planted' found) $(sed -n 's/^planted.*\t//p' found | tr '\n' ' ')" "3 1b  ['=1'] " \
	"planted bytes and formulas are found"
tap_done
