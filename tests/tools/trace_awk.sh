# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034 # read by tests
#
# trace_awk.sh - functions of awk that write events of traces; read by tests that make their own
trace_awk='
function out(line) { print "{\"ev\":" line "}" }
function alloc(mib) {
	out("\"alloc\",\"t\":" n ",\"bytes\":" mib * 1048576 ",\"role\":\"param\"")
	size[n] = mib
	return n++
}
# flops: for each byte
function op(name, r, w, mib, flops) {
	out("\"op\",\"name\":\"" name "\",\"r\":[" r "],\"w\":[" w "],\"flops\":" flops * mib * 1048576 \
	    ",\"bytes\":" mib * 1048576)
}'
