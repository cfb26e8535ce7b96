#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# plan_replay.sh - plans by chance, carried out by the library's proof and by a second one that knows the format alone

: "${top_srcdir:=.}" "${top_builddir:=.}"
. "$top_srcdir/tests/tap.sh"

command -v python3 >/dev/null || skip_all "no python3"
replay() { python3 "$top_srcdir/tests/fixture/umplan_replay.py" "$@"; }

[ -n "${UM_TEST_ALL-}" ] || export UM_TEST_FEW=1 # python takes long
PLAN_DIR=$tmp "$top_builddir/tests/plan/test_planner" >"$tmp/log" 2>&1
PLAN_DIR=$tmp "$top_builddir/tests/plan/test_recompute" >"$tmp/log" 2>&1
ok "some launch operations again" test "$(grep -l '"kind":"recompute"' "$tmp"/*.umplan | wc -l)" -ge 3
plans=$(find "$tmp" -name '*.umplan' | wc -l)
ok "there are many ($plans)" test "$plans" -gt 12
ok "both take every plan for sound and agree on its time" replay --predicted "$tmp"/*.umplan

# The replay itself must notice: a plan without its prefetches, one that claims to be faster.
some=$(grep -l '"kind":"evict"' "$tmp"/*.umplan | head -n 1)
grep -v '"kind":"prefetch"' "$some" >"$tmp/absent.umplan"
fails 1 "bytes that no prefetch brings are seen" replay "$tmp/absent.umplan"
sed 's/"predicted_ns":/"predicted_ns":1/' "$some" >"$tmp/slow.umplan"
fails 1 "a time that is wrong is seen" replay --predicted "$tmp/slow.umplan"
tap_done
