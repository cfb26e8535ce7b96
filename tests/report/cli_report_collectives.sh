#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# umadvise report --merge: ranks that wait for each other in collectives are compared by their own time.
: "${top_srcdir:=.}" "${top_builddir:=.}"
. "$top_srcdir/tests/tap.sh"

python3 -c 'import sqlite3' 2>/dev/null || skip_all "no Python with SQLite"

# A rank that computes, then joins a collective: FILE NAME COMPUTE_NS COLLECTIVE_NS
rank() {
	local i
	{
		printf '{"umtrace":1,"source":"by hand","workload":"rank"}\n'
		printf '{"ev":"alloc","t":%d,"bytes":67108864,"name":"t%d"}\n' 0 0 1 1
		for i in 0 1 2 3 4 5; do
			printf '{"ev":"iter","n":%d}\n' "$i"
			printf '{"ev":"op","name":"forward","r":[0],"w":[0],"ns":%d}\n' "$3"
			printf '{"ev":"op","name":"%s","r":[1],"w":[1],"ns":%d}\n' "$2" "$4"
		done
	} >"$tmp/$1.umtrace"
	"$UMADVISE" simulate "$tmp/$1.umtrace" --strategy on-demand --export "$tmp/$1.sqlite" >/dev/null 2>&1
}
report() { "$UMADVISE" report --merge "$@" --report ranks --format json; }
# FILES...: of each process the file, and the values of these keys
values() {
	local keys=$1
	shift
	report "${@/#/$tmp/}" | python3 -c '
import json, os, sys
for r in json.load(sys.stdin)["ranks"]:
    print(os.path.basename(r["file"]).split(".")[0], *(r[k] for k in sys.argv[1].split(",")), end="; ")' "$keys"
}
dev='ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)'

rank slow "$dev" 3000000 1000000
rank quick "$dev" 1000000 3000000
rank middle "$dev" 2000000 2000000
is "$(values iteration_ns,collective_ns,own_ns quick.sqlite slow.sqlite middle.sqlite)" \
	"slow 4000000 1000000 3000000; middle 4000000 2000000 2000000; quick 4000000 3000000 1000000; " \
	"of ranks with equal iterations, the one that waits least in collectives is the slowest"
is "$(values slower_ns,slower_percent,above_mean_ns,reason quick.sqlite slow.sqlite middle.sqlite)" \
	"slow 2000000 200 1000000 longer kernels; middle 1000000 100 0 longer kernels; quick 0 0 -1000000 None; " \
	"they are compared and explained by their own time"
is "$(values kernel_ns,idle_ns quick.sqlite slow.sqlite)" "slow 4000000 0; quick 4000000 0; " \
	"the time of kernels includes collectives"
"$UMADVISE" report --merge "$tmp/slow.sqlite" "$tmp/quick.sqlite" >"$tmp/text"
like "$(<"$tmp/text")" $'\nranks:.*\n.* in collectives +own ' "the text has their columns"
like "$("$UMADVISE" report --merge "$tmp/slow.sqlite" "$tmp/quick.sqlite" --format html)" \
	'>in collectives <small>' "the page has their columns"

# Other names of such kernels, and a name that only looks like one.
i=0
for name in ncclKernel_AllReduce_RING_LL_Sum_float ncclSymDevKernel_AllReduce_RSxLD_AGxST_sum_bf16 \
	ncclSymkDevKernel_AllGather_LL _Z23ncclDevKernel_Generic_124ncclDevKernelArgsStorageILm4096EE; do
	rank name$((++i)) "$name" 1000000 3000000
	is "$(values collective_ns name$i.sqlite slow.sqlite)" "slow 1000000; name$i 3000000; " "$name is a collective"
done
rank other ncclTests_Kernel_x 1000000 3000000
is "$(values collective_ns,own_ns,slower_ns,reason other.sqlite slow.sqlite)" \
	"other None None 0 None; slow 1000000 3000000 0 None; " \
	"where one process has no collectives, iterations are compared"
cp "$tmp/other.sqlite" "$tmp/other2.sqlite"
"$UMADVISE" report --merge "$tmp/other.sqlite" "$tmp/other2.sqlite" >"$tmp/text"
like "$(<"$tmp/text")" $'\nranks:' "processes without collectives are compared"
is "$(grep -c "in collectives" "$tmp/text")" 0 "their table has no columns of collectives"

# A collective that begins with the computation: only what exceeds it is waiting.
beside() { # FILE COMPUTE_NS COLLECTIVE_NS
	rank "$1" "$dev" "$2" "$3"
	python3 - "$tmp/$1.sqlite" "$2" <<'PY'
import sqlite3, sys
c = sqlite3.connect(sys.argv[1])
c.execute("""UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = start - ?, end = end - ?
WHERE shortName IN (SELECT id FROM StringIds WHERE value LIKE 'nccl%')""", (sys.argv[2], sys.argv[2]))
assert c.total_changes
c.commit()
PY
}
beside beside 1000000 3000000
beside hidden 3000000 1000000
is "$(values iteration_ns,collective_ns,own_ns,idle_ns,reason hidden.sqlite beside.sqlite)" \
	"hidden 3000000 0 3000000 0 longer kernels; beside 3000000 2000000 1000000 0 None; " \
	"computation beside a collective is the process's own time"
tap_done
