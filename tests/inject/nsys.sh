#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# nsys.sh - umadvise run beside the real Nsight Systems, in either order: the program's result and status, its ranges
# as iterations, and an export with its ranges and the library's domain. Skipped without nsys, which Debian has in
# non-free (doc/run.md); run.sh has another tool in its place.

: "${top_srcdir:=.}" "${top_builddir:=.}" "${CC:=cc}" "${SANITIZE=}"
. "$top_srcdir/tests/tap.sh"

nsys=$(type -P nsys) || skip_all "no nsys (Nsight Systems) in PATH"
[ -e "$top_builddir/standin/libcuda.so.1" ] || skip_all "the stand-in driver was not built"
[ -e "$top_builddir/lib/inject/.libs/libumadvise-preload.so" ] || skip_all "the library to preload was not built"
[ -z "$SANITIZE" ] || skip_all "a sanitizer must come before the profiler's libraries"
python3 -c 'import sqlite3' 2>/dev/null || skip_all "no Python with SQLite"
export TMPDIR=$tmp # of nsys
profile=(nsys profile --sample=none --cpuctxsw=none --force-overwrite true -o "$tmp/r")
timeout -k 5 120 "${profile[@]}" --trace=nvtx true >"$tmp/log" 2>&1
[ -e "$tmp/r.nsys-rep" ] || skip_all "nsys makes no report here: $(tail -n 1 "$tmp/log")"
for include in /usr/include /usr/local/cuda/include "$(dirname "$(readlink -f "$nsys")")/nvtx/include" none; do
	[ -e "$include/nvtx3/nvToolsExt.h" ] && break
done
[ "$include" != none ] || skip_all "no headers of NVTX 3"
# shellcheck disable=SC2086 # CC is a list
$CC -std=gnu11 -D_GNU_SOURCE -DRANGES -I"$top_srcdir/include" -isystem "$include" -o "$tmp/app" \
	"$top_srcdir/tests/inject/inject_app.c" -pthread -ldl || skip_all "no program can be built"

run=("$UMADVISE" run)
dry() { # BUDGET COMMAND...
	timeout -k 5 120 "$UMADVISE" dryrun --profile a100 -o "$tmp/report" --budget "$1" -- "${@:2}"
}

# Numbers of the program's ranges, of the library's ranges of that name, of its tensors, and of its ops: 240 launches,
# 12 copies, and the fills after the allocation that did not fit.
recorded() {
	rm -f "$tmp/r.sqlite"
	nsys export --type sqlite -o "$tmp/r.sqlite" "$tmp/r.nsys-rep" >"$tmp/export" 2>&1 || cat "$tmp/export"
	python3 - "$tmp/r.sqlite" <<'END'
import sqlite3, sys
count = {}
for library, text in sqlite3.connect(sys.argv[1]).execute("""
        SELECT EXISTS (SELECT 1 FROM NVTX_EVENTS d WHERE d.eventType = 75 AND d.domainId = e.domainId
                       AND d.globalTid >> 24 = e.globalTid >> 24 AND d.text = 'umadvise'),
               coalesce(text, (SELECT value FROM StringIds WHERE id = textId)) FROM NVTX_EVENTS e
        WHERE eventType IN (34, 59, 60)"""):
    key = library, text.split()[0]
    count[key] = count.get(key, 0) + 1
print(*(count.get(key, 0) for key in ((0, 'step'), (1, 'step'), (1, 'tensor'), (1, 'op'))))
END
}

want=$(dry 2GiB "$tmp/app" compute)
like "$want" '^[0-9]+$' "the program computes a sum"
beside() { # NAME COMMAND...
	local rc=0
	rm -f "$tmp/r.nsys-rep"
	dry 64MiB "${@:2}" >"$tmp/out" 2>"$tmp/err" || rc=$?
	is "$rc $(grep -cx "$want" "$tmp/out")" "0 1" "$1: status and result are the program's"
	like "$(cat "$tmp/err")" "run: app: seen 100 % of 96.0 MiB and 100 % of 240 launches; [1-9][0-9]* hints in" \
		"$1: all memory and launches are seen"
}
beside "run -- nsys" "${run[@]}" -- "${profile[@]}" --trace=nvtx,osrt "$tmp/app" compute
like "$(recorded)" '^20 0 12 257$' "run -- nsys: the export has the program's ranges and the library's domain"
beside "nsys run" "${profile[@]}" --trace=cuda,nvtx "${run[@]}" -- "$tmp/app" compute
like "$(recorded)" '^20 0 12 257$' "nsys run: the export has the program's ranges and the library's domain"
beside "run --iteration -- nsys" "${run[@]}" --iteration 'step *' -- "${profile[@]}" --trace=cuda,nvtx \
	"$tmp/app" compute
like "$(cat "$tmp/err")" " of 20 iterations" "run --iteration -- nsys: the ranges are iterations"
like "$(recorded)" '^20 20 12 257$' "run --iteration -- nsys: the export has both"
beside "nsys run --iteration" "${profile[@]}" --trace=nvtx,osrt "${run[@]}" --iteration 'step *' -- "$tmp/app" compute
like "$(cat "$tmp/err")" " of 20 iterations" "nsys run --iteration: the ranges are iterations"
like "$(recorded)" '^20 20 12 257$' "nsys run --iteration: the export has both"
fails 9 "run -- nsys: a failure is the program's" \
	dry 64MiB "${run[@]}" -- "${profile[@]}" --trace=nvtx "$tmp/app" compute plain 1
fails 9 "nsys run: a failure is the program's" \
	dry 64MiB "${profile[@]}" --trace=nvtx "${run[@]}" -- "$tmp/app" compute plain 1
tap_done
