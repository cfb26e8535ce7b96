#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# agree.sh - the simulated GPU agrees with the code of the open driver that UVM_SOURCE names

: "${top_srcdir:=.}" "${top_builddir:=.}" "${UVM_SOURCE=}" "${SANITIZE=}" "${CC:=cc}"
. "$top_srcdir/tests/tap.sh"
export CC UVM_SOURCE top_builddir

run=$top_srcdir/tests/driver/run
UVM_SOURCE='' fails 2 "a comparison without a driver is refused" "$run" 10
like "$(cat "$tmp/.tap")" 'UVM_SOURCE is not set' "the refusal names the variable"
UVM_SOURCE=$tmp fails 2 "a folder without the driver's files is refused" "$run" 10
fails 2 "a number of states that is not a number is refused" "$run" few

[ -z "$SANITIZE" ] || UVM_SOURCE=
if [ -z "$UVM_SOURCE" ]; then
	skip 3 "UVM_SOURCE is not set, or this build has sanitizers"
	tap_done
fi
"$run" "${UM_TEST_DRIVER_STATES:-3000}" >"$tmp/table" 2>"$tmp/errors"
is "$?" 0 "nothing differs but what is documented"
like "$(tail -n 1 "$tmp/table")" '^[0-9]+ states, 0 differences, [0-9]+ documented$' "the last line has the sums"
is "$(cat "$tmp/errors")" "" "no assertion of the driver fails"
tap_done
