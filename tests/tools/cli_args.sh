#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The options of every verb: one way of parsing, refusing, listing and completing them, and a manual that has them all.
. "${top_srcdir:=.}/tests/tap.sh"

data=$top_srcdir/tests/data
cg=$data/cg_laplace3d.umtrace.gz
mapfile -t verbs < <("$UMADVISE" --complete)
said() { { "$UMADVISE" "$@" >/dev/null; } 2>&1; }

ok "the tool lists its verbs for the shell" test "${#verbs[@]}" -ge 7
for verb in "${verbs[@]}"; do
	"$UMADVISE" "$verb" --help >"$tmp/$verb.help"
	"$UMADVISE" --complete "$verb" >"$tmp/$verb.options"
	is "$(awk 'length > 104' "$tmp/$verb.help")" "" "the help of $verb fits a terminal"
	is "$(grep -oE '^  (-[a-z], )?--[a-z-]+' "$tmp/$verb.help" | tr -d ' ' | LC_ALL=C sort)" \
		"$(grep -oE '^(-[a-z] )?--[a-z-]+' "$tmp/$verb.options" | tr ' ' ',' | LC_ALL=C sort)" \
		"$verb: --help and the completion have the same options"
	like "$(<"$tmp/$verb.help")" '^Examples?:$' "the help of $verb ends with examples"
	fails 2 "$verb refuses an option that it does not have" "$UMADVISE" "$verb" --nonesuch
	is "$(head -n 1 "$tmp/.tap")" \
		"umadvise $verb: unknown option '--nonesuch': 'umadvise $verb --help' lists the options" \
		"$verb names the option and where the options are listed"
done
is "$(cat "$tmp"/*.options | grep -oE '^(-[a-z] )?--[a-z-]+' | sort -u | sed 's/.*--//' | uniq -d)" "" \
	"an option has the same short form in each verb that has it"
is "$(cat "$tmp"/*.options | sed 's/^-[a-z] //' | grep -vE '^--(help|format|output|fail-on) ?' | sort -u |
	cut -d ' ' -f 1 | uniq -d)" "" "an option takes the same values in each verb that has it"

# The manual: a section a verb, and one for what every verb has.
section() { sed 's/\\-/-/g' "$top_srcdir/tools/umadvise.1" | sed -n "/^.SS umadvise $1\$/,/^.S[SH] /p"; }
for verb in "${verbs[@]}"; do
	case $verb in
	trace) section 'trace check' && section 'trace stat' ;;
	*) section "$verb" ;;
	esac >"$tmp/$verb.man"
	missing=
	while read -r option; do
		grep -qE -- "$option(\\\\|[^a-z-]|\$)" "$tmp/$verb.man" || missing+=" $option"
	done < <(grep -oE -- '--[a-z-]+' "$tmp/$verb.options" | grep -vxE -- '--(help|color)')
	is "$missing" "" "umadvise(1) describes every option of $verb in its section"
	letters=$(grep -oE '^-[a-z] --[a-z-]+' "$tmp/$verb.options" | grep -v help)
	is "$(while read -r short long; do
		grep -qE -- "^.BR $short \", \" $long|\" $short \", \" $long" "$tmp/$verb.man" || echo "$short"
	done <<<"$letters")" "" "umadvise(1) has the short forms of $verb"
done

# What is wrong is said in one form: the option, the value, what would have been right.
wrong() { # MESSAGE ARGUMENT...
	local message=$1
	shift
	is "$(said "$@")" "umadvise $1: $message" \
		"${*//*\//}: the message names the option, the value and what is right"
}
wrong "--jitter '300': expected a percentage, 0 to 99" simulate "$cg" --jitter 300
wrong "--iterations '0': expected a number, 1 to 1000000" plan "$cg" --iterations 0
wrong "--budget '1XB': expected a size such as 512MiB, 2 MiB at least" simulate "$cg" --budget 1XB
wrong "--budget '1KiB': expected a size such as 512MiB, 2 MiB at least" dryrun --budget 1KiB true
wrong "--format 'jsn': expected table, json or csv; did you mean 'json'?" trace stat -f jsn "$cg"
wrong "--format 'xml': expected table, csv or json" diff a b --format xml
wrong "--format needs a value: expected table or json" calibrate --format
wrong "--fail-on 'error': expected low, medium or high" report a --fail-on error
wrong "--oversubscribe '0': expected ratios from 0.01 to 1000, 16 at most" simulate "$cg" --oversubscribe 1.5,0
wrong "--diff cannot be used with --show" plan --diff a b --show
wrong "--profile cannot be used with --show" plan --show a --profile a100
wrong "--format cannot be used with check" trace check --format json "$cg"
wrong "unknown option '--budgte': did you mean '--budget'?" simulate "$cg" --budgte 1GiB
wrong "unknown option '--jitter': it is an option of umadvise simulate" report a --jitter 5
wrong "unknown option '--trace': 'umadvise report --help' lists the options" report a --trace b
wrong "--format 'trace': expected table, csv, json, html or perfetto" report a --format trace
wrong "--evict 'home': expected auto, library or driver" simulate "$cg" --evict home
wrong "unknown option '-z': 'umadvise report --help' lists the options" report a -z
wrong "--bound takes no value" simulate "$cg" --bound=3
is "$(said simulte)" "umadvise: unknown verb 'simulte': did you mean 'simulate'?" \
	"a verb close to the one given is named"
like "$(said simulate "$cg" --strategy on-demand,lookahaed)" \
	"'lookahaed': expected .*did you mean 'lookahead'" \
	"a strategy close to the one given is named"

# Lists.
"$UMADVISE" simulate --list-profiles >"$tmp/profiles"
like "$(<"$tmp/profiles")" '^v100 +[0-9.]+ MiB +[0-9.]+ GB/s in +[0-9.]+ GB/s out$' \
	"a profile's line has memory and link"
# A profile and where it is from.
"$UMADVISE" simulate --show-profile a100 >"$tmp/a100.profile"
is "$(grep -c '^[a-z0-9_]* = .* # .' "$tmp/a100.profile")" "$(grep -vc '^#' "$tmp/a100.profile")" \
	"--show-profile: each constant has a source"
{
	grep -v '^c_' "$tmp/a100.profile"
	echo "c_pf = 12345 # a bet"
	echo "c_blk = 1"
} >"$tmp/mine.profile"
"$UMADVISE" simulate --show-profile "$tmp/mine.profile" >"$tmp/shown"
like "$(<"$tmp/shown")" "
c_blk = 1 # the file, which names no source
" "--show-profile: a value without a comment is the file's"
like "$(<"$tmp/shown")" "
c_pf = 12345 # a bet
" "--show-profile: comments of a file are sources"
like "$(<"$tmp/shown")" "
c_hostpop = 335000 # derived: A100" "--show-profile: keys that the file lacks have the source of the default"
fails 3 "--show-profile of nothing is refused" "$UMADVISE" simulate --show-profile "$tmp/none"
for verb in plan report dryrun; do
	is "$("$UMADVISE" "$verb" --list-profiles)" "$(<"$tmp/profiles")" "$verb lists the same profiles"
done
is "$("$UMADVISE" plan --format json --list-profiles | python3 -c '
import json, sys
d = json.load(sys.stdin)
print(d["schema"], *[p["name"] for p in d["profiles"]], min(p["h2d_bytes_per_s"] for p in d["profiles"]) > 1e9)')" \
	"umprofiles/1 $(awk '{ print $1 }' "$tmp/profiles" | paste -sd ' ') True" \
	"--list-profiles --format json has them all"
for list in simulate:--list-strategies report:--help-reports; do
	is "$("$UMADVISE" "${list%:*}" "${list#*:}" -f json | python3 -c '
import json, sys
print(*[x for v in json.load(sys.stdin).values() if isinstance(v, list) for x in v])')" \
		"$("$UMADVISE" "${list%:*}" "${list#*:}" | awk '{ print $1 }' | paste -sd ' ')" \
		"${list#*:} --format json has the same names"
done

# Completion, in a bash that is not interactive: the words typed so far, the last of them incomplete.
completion=$top_srcdir/share/bash-completion/completions/umadvise
complete() {
	# shellcheck disable=SC2016 # for the other bash
	bash --norc -c 'file=$1 tool=$2
		shift 2
		. "$file"
		COMP_WORDS=("$tool" "$@") COMP_CWORD=$#
		_umadvise
		printf "%s\n" "${COMPREPLY[@]}"' - "$completion" "$UMADVISE" "$@" |
		paste -sd ' '
}
is "$(complete '')" "${verbs[*]} --help --version" "the first word is a verb"
is "$(complete si)" "simulate" "a verb is completed"
for verb in "${verbs[@]}"; do
	is "$(complete "$verb" --)" "$(grep -oE -- '--[a-z-]+' "$tmp/$verb.options" | paste -sd ' ')" \
		"every option of $verb is offered"
done
is "$(complete simulate x --format '')" "table json csv" "values of an option are offered"
is "$(complete simulate -f = j)" "json" "a value behind = is completed"
is "$(complete report --format h)" "html" "each verb has its own values"
is "$(complete dryrun --profile h)" "h20 h100 h200" "profiles are completed"
is "$(complete simulate --strategy on-demand,look)" "on-demand,lookahead" "a list is completed behind its comma"
is "$(complete trace '')" "check stat" "trace is followed by check or stat"
is "$(complete plan --show '')" "" "bash completes file names"

# Several ratios: a block each; and a note where all fits.
"$UMADVISE" simulate "$cg" --oversubscribe 1.25,1.5,2 --strategy on-demand,lookahead -f csv >"$tmp/three"
for r in 1.25 1.5 2; do
	"$UMADVISE" simulate "$cg" --oversubscribe $r --strategy on-demand,lookahead -f csv | tail -n 2
done >"$tmp/each"
is "$(tail -n +2 "$tmp/three")" "$(<"$tmp/each")" "three ratios give the rows of three runs, and one heading"
is "$("$UMADVISE" simulate "$cg" --oversubscribe 1.25,2 --strategy infinite | grep -o '([0-9.]*x)' | paste -sd ' ')" \
	"(1.25x) (2.00x)" "a table has a block for each ratio"
is "$("$UMADVISE" simulate "$cg" --oversubscribe 1.25,2 --strategy infinite -f json | python3 -c '
import json, sys
print([r["oversubscribe"] for r in json.load(sys.stdin)["runs"]])')" "[1.25, 2.0]" "JSON carries the ratio of each run"
fails 2 "a plan takes one ratio" "$UMADVISE" plan "$cg" --oversubscribe 1.25,2 -o "$tmp/x"
fails 2 "an export takes one ratio" "$UMADVISE" simulate "$cg" --oversubscribe 1.25,2 --strategy infinite \
	--export "$tmp/x"
like "$(said simulate "$cg" --strategy infinite)" \
	"^umadvise simulate: note: .* fits into the [0-9.]+ MiB of v100: reduce" \
	"a note says that all fits where no budget was given"
is "$(said simulate "$cg" --strategy infinite --budget 16GiB)" "" "with a budget there is no note"

# Colour: only where it was asked for, or a terminal is at the other end and NO_COLOR is not set.
escape=$(printf '\033')
table() { "$UMADVISE" simulate "$cg" --oversubscribe 1.5 "$@"; }
is "$(table | grep -c "$escape")" 0 "output to a pipe has no colour"
is "$(table --color always | grep -c "$escape")" 2 "--color always colours the headings"
is "$(table --color always | sed "s/$escape\\[[0-9;]*m//g")" "$(table)" "without its colours it is the same table"
ok "it goes to a file" table --color auto -o "$tmp/plain"
is "$(grep -c "$escape" "$tmp/plain")" 0 "a file has no colour"
if command -v script >/dev/null; then
	terminal() { TERM=xterm script -qec "$UMADVISE simulate $cg --oversubscribe 1.5 $*" /dev/null; }
	is "$(NO_COLOR='' terminal | grep -c "$escape")" 2 "a terminal has colour"
	is "$(NO_COLOR=1 terminal | grep -c "$escape")" 0 "NO_COLOR turns it off"
	is "$(NO_COLOR='' terminal --color never | grep -c "$escape")" 0 "--color never turns it off"
else
	skip 3 "no script(1) to make a terminal with"
fi

# Tables: no wider than 100 columns, and no column that is empty.
table --strategy infinite,on-demand,prefetch-on-use,lookahead,autoswap --bound >"$tmp/wide"
is "$(awk 'length > 100' "$tmp/wide")" "" "the table with bounds fits 100 columns"
like "$("$UMADVISE" simulate "$cg" --budget 16GiB --strategy infinite | sed -n 2p)" \
	"^strategy +time ms +x core +faults$" "columns that are empty are left out"
tap_done
