#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# absent.sh STATUS PREFIX HEADER MORE COMPILER... - functions of a library of CUDA
#
# in    the header's declarations that return STATUS and whose names begin with PREFIX, and the names in MORE
# out   X(name) for each, on standard output, for standin/absent.c
#
# COMPILER, with its options, preprocesses a line that includes HEADER. Inline functions are not in the library.

status=$1 prefix=$2 header=$3 more=$4
shift 4
names=$(printf '#include <%s>\n' "$header" | "$@" -E -P -x c - | tr -s '[:space:]' ' ' | tr ';{}' '\n\n\n' |
	sed -n "/static /d; s/.*$status  *\($prefix[A-Za-z0-9_]*\) *(.*/\1/p")
if [ -z "$names" ]; then
	echo "absent.sh: no functions in $header" >&2
	exit 1
fi
# shellcheck disable=SC2086 # lists
printf 'X(%s)\n' $names $more | LC_ALL=C sort -u
