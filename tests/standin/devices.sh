#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# umadvise dryrun --devices: programs of one process that use several devices, with and without umadvise run.
: "${top_srcdir:=.}" "${top_builddir:=.}" "${CC:=cc}" "${SANITIZE=}"
. "$top_srcdir/tests/tap.sh"

[ -e "$top_builddir/standin/libcuda.so.1" ] || skip_all "the stand-in driver was not built"
# shellcheck disable=SC2086 # CC and flags are lists
$CC $SANITIZE -std=c11 -D_GNU_SOURCE -I"$top_srcdir/include" -o "$tmp/app" \
	"$top_srcdir/tests/standin/devices_app.c" -ldl -lpthread || skip_all "no program can be built"
app=$tmp/app

dryrun() { "$UMADVISE" dryrun -o "$tmp/r" "$@"; }
json() { dryrun --format json "$@"; }
figures() { # KEY: of each device
	sed -n "s/^ \{1,3\}\"$1\": \"\\{0,1\\}\\([^\",]*\\)\"\\{0,1\\},\\{0,1\\}\$/\\1/p" "$tmp/r" | paste -sd ' '
}

# --- devices ---------------------------------------------------------------------------------------------------------

is "$(dryrun --devices 3 --budget 64MiB "$app" facts)" \
	"000 0000:01:00.0 bus 1 uuid v1000 peer 0 free 64
111 0000:02:00.0 bus 2 uuid v1001 peer 0 free 64
222 0000:03:00.0 bus 3 uuid v1002 peer 0 free 64" "three devices differ, and each has its memory"
is "$(UMADVISE_DRYRUN_DEVICES=2 LD_LIBRARY_PATH=$(cd "$top_builddir/standin" && pwd) "$app" facts | wc -l)" 2 \
	"without the tool a variable sets their number"
is "$(json --devices 2 "$app" share)" "managed 63
copied 127 on 1" "devices use managed memory in turn, and copy between them"
is "$(figures device)" "0 1" "the report has both"
is "$(figures copied_d2h_bytes)/$(figures copied_h2d_bytes)" "2097152 2097152/2097152 2097152" \
	"a copy between devices counts on each"
ok "both devices moved managed memory" test "$(figures h2d_bytes | tr -d ' 0' | wc -c)" -gt 2
dryrun --devices 2 "$app" share >"$tmp/o"
is "$(grep -o '^app on v100 (simulated), device .' "$tmp/r" | paste -sd /)" \
	"app on v100 (simulated), device 0/app on v100 (simulated), device 1" "the table has a section for each"
json "$app" steps 2 >"$tmp/one"
grep -v '"pid"' "$tmp/r" >"$tmp/a"
json --devices 1 "$app" steps 2 >"$tmp/one"
ok "one device is reported as without the option" diff "$tmp/a" <(grep -v '"pid"' "$tmp/r")
dryrun --devices 2 --format csv "$app" share >"$tmp/o"
is "$(cut -d, -f4 "$tmp/r" | tr -d '\r' | paste -sd ' ')" "device 0 1" "a line of CSV for each"

for how in "" threads; do
	# shellcheck disable=SC2086 # nothing or a word
	is "$(json --devices 4 "$app" steps 2 $how)" "device 0 $(sed 's/.* //' "$tmp/one")
device 1 $(sed 's/.* //' "$tmp/one")
device 2 $(sed 's/.* //' "$tmp/one")
device 3 $(sed 's/.* //' "$tmp/one")" "four devices compute what one does (${how:-one thread})"
	is "$(figures kernels)" "24 24 24 24" "each has done its part"
done

# --- the library -----------------------------------------------------------------------------------------------------

contexts=$top_builddir/tests/standin/contexts_app
one=$(dryrun --budget 48MiB "$contexts" turns)
is "${one#* }" "hinted, 0 errors" "a context on one device issues hints"
for n in 2 4; do
	for how in turns threads; do
		is "$(json --devices $n --budget 48MiB "$contexts" $how)" "$(yes "$one" | head -n $n)" \
			"$how: each of $n devices computes what one does, and gets hints"
		is "$(figures faults) $(figures resident_peak_bytes)" \
			"$(yes 0 | head -n $n | paste -sd ' ') $(yes 50331648 | head -n $n | paste -sd ' ')" \
			"$how: no device faults, and each keeps its budget"
	done
done
sum() { tr ' ' '\n' | awk '{ n += $1 } END { print n }'; }
for how in joint readers; do
	want=$(UMADVISE_DISABLE=1 json --devices 2 --budget 48MiB "$contexts" $how)
	faults=$(figures faults | sum)
	is "$(json --devices 2 --budget 48MiB "$contexts" $how)" "${want//no hints/hinted}" \
		"$how: with memory that both devices use, results are the driver's"
	ok "$how: there are less than a twentieth of its faults" test $((20 * $(figures faults | sum))) -lt "$faults"
	is "$(json --devices 4 --budget 48MiB "$contexts" $how | sed -n '1,4p' | sort -u)" \
		"$(head -n 1 <<<"${want//no hints/hinted}")" "$how: each of four devices computes the same"
done
is "$(figures hints_refused | tr -d ' 0')" "" "no hint names another device"
is "$(dryrun --devices 2 --budget 48MiB "$contexts" mistakes 2>"$tmp/e")" "-22 -22 -22 -22
$one
$one" "calls that name memory of another device's context are refused, and change nothing"
is "$(sed 's/0x[0-9a-f]*/P/' "$tmp/e")" \
	"umadvise: op 'wrong' uses P, which is memory of another context, on device 1: the op is refused; an op names \
tensors of its own context" "one line says so"

# The log is enough: the stand-in's nodes are one place.
nodes() { # VARIABLE=VALUE...: the lines about nodes of two contexts
	env UMADVISE_LOG=info "$@" "$UMADVISE" dryrun -o "$tmp/r" --format json --devices 2 --budget 48MiB \
		"$contexts" turns 2>&1 >"$tmp/o" | sed -n 's/^umadvise: \(.*NUMA node\)/\1/p'
}
is "$(nodes UMADVISE_DRYRUN_NODES=2)" "evicted data go to NUMA node 0 of the host
evicted data go to NUMA node 1 of the host" "evicted data of each device go to its node of the host"
is "$(cat "$tmp/o") $(figures hints_refused)" "$one
$one 0 0" "no hint to a node is refused, and results are the same"
is "$(nodes UMADVISE_DRYRUN_NODES=1)" "" "a host with one node has no node to choose"
is "$(nodes UMADVISE_DRYRUN_NODES=2 UMADVISE_HOST_NODE=off)" "" "UMADVISE_HOST_NODE=off chooses no node"
is "$(nodes UMADVISE_DRYRUN_NODES=2 UMADVISE_HOST_NODE=1 | sort -u)" "evicted data go to NUMA node 1 of the host" \
	"UMADVISE_HOST_NODE=1 chooses node 1 for all devices"
is "$(nodes UMADVISE_DRYRUN_NODES=2 UMADVISE_HOST_NODE=2 | sort -u)" \
	"the driver refuses NUMA node 2: evicted data go to any node of the host" \
	"one line names a node that is refused"
is "$(cat "$tmp/o") $(figures hints_refused)" "$one
$one 0 0" "no hint after that is refused, and results are the same"

# With a sanitizer the preloaded library comes before the sanitizer's.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0"
plain=$(dryrun --devices 2 "$app" steps 8)
for how in "" threads; do
	# shellcheck disable=SC2086 # nothing or a word
	is "$(json --devices 2 --budget 16MiB "$UMADVISE" run -- "$app" steps 8 $how 2>"$tmp/e")" \
		"$plain" "umadvise run: results on two devices are the same (${how:-turns})"
	like "$(cat "$tmp/e")" "100 % of 192 launches; [0-9]+ hints in" \
		"umadvise run: it sees all launches (${how:-turns})"
	ok "umadvise run: each device gets hints (${how:-turns})" test "$(figures hints | tr ' ' '\n' |
		awk '$1 > 100' | wc -l)" = 2
	is "$(figures hints_refused)" "0 0" "umadvise run: none is refused (${how:-turns})"
done

# --- links -----------------------------------------------------------------------------------------------------------

cat >"$tmp/two.profile" <<-END
	name = two
	capacity = 1 GiB
	flops = 13e12
	mem_bandwidth = 800e9
	launch_ns = 5000
	h2d = 12e9
	d2h = 12e9
	link_devices = 2
END
json --devices 2 "$app" steps 1 threads >"$tmp/o"
ok "a profile says how many devices share a link" json --devices 2 --profile "$tmp/two.profile" "$app" facts
for wrong in "--devices 0" "--devices 17" "--devices two" "--per-link 0"; do
	# shellcheck disable=SC2086 # two words
	dryrun $wrong "$app" facts >"$tmp/o" 2>"$tmp/e"
	is "$? $(wc -l <"$tmp/e")" "2 1" "$wrong is refused with one line"
done
UMADVISE_DRYRUN_DEVICES=many LD_LIBRARY_PATH=$(cd "$top_builddir/standin" && pwd) "$app" facts >"$tmp/o" 2>"$tmp/e"
is "$(head -n 1 "$tmp/e")" "umadvise: UMADVISE_DRYRUN_DEVICES: 'many' is not a number from 1 to 16" \
	"a wrong value of the variable is named"
tap_done
