#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A program closes its context, or ends, while hints are outstanding: its exit status stays 0 under dryrun and on the
# simulated GPU.
: "${top_srcdir:=.}" "${top_builddir:=.}"
. "$top_srcdir/tests/tap.sh"

app=$top_builddir/tests/standin/close_app
if [ ! -e "$top_builddir/standin/libcuda.so.1" ] || [ ! -x "$app" ]; then
	skip_all "the stand-in driver was not built"
fi
for strategy in lookahead autoswap prefetch-on-use; do
	for how in close thread exit sync; do
		ok "$how: a context of strategy $strategy ends with hints outstanding" env UMADVISE_STRATEGY=$strategy \
			"$UMADVISE" dryrun --budget 256MiB -o "$tmp/r" "$app" $how
		is "$(head -n 1 "$tmp/.tap")" hinted "$how: hints were issued under strategy $strategy"
	done
	for how in close thread exit; do
		ok "$how: the same on the simulated GPU with strategy $strategy" env UMADVISE_STRATEGY=$strategy \
			UMADVISE_DEVICE=sim "$app" $how
	done
done
tap_done
