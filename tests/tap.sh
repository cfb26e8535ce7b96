# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# tap.sh - the same as tap.h for shell tests: `. "$top_srcdir/tests/tap.sh"`, checks, `tap_done` last.
#
#     ok "it runs" "$UMADVISE" --version            the command succeeds
#     is "$got" "$want" "two texts are equal"
#     fails 2 "a usage error" "$UMADVISE" --nonsense   the command exits with this status
#     like "$text" 'pattern' "matches the extended regular expression"
#     skip 2 "no nvcc"
#
# $tmp is an empty folder of this test, removed at the end.

: "${top_srcdir:=.}" "${top_builddir:=.}"
tap_run=0
tap_failed=0
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT

# The one that configure found, without a search each time.
[ -z "${PYTHON3-}" ] || python3() { "$PYTHON3" "$@"; }

diag() { printf '%s\n' "$*" | sed 's/^/# /'; }

tap_result() { # STATUS NAME
	tap_run=$((tap_run + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $tap_run - ${2//#/.}"
	else
		tap_failed=$((tap_failed + 1))
		echo "not ok $tap_run - ${2//#/.}"
		echo "#   at ${BASH_SOURCE[2]}:${BASH_LINENO[1]}"
	fi
	return "$1"
}

ok() { # NAME COMMAND...
	local name=$1 rc=0
	shift
	"$@" >"$tmp/.tap" 2>&1 || rc=$?
	tap_result "$rc" "$name" && return
	diag "  status $rc of: $*"
	head -n 40 "$tmp/.tap" | sed 's/^/#   /'
	return 1
}

fails() { # STATUS NAME COMMAND...
	local want=$1 name=$2 rc=0
	shift 2
	"$@" >"$tmp/.tap" 2>&1 || rc=$?
	tap_result "$((rc != want))" "$name" && return
	diag "  status $rc, want $want, of: $*"
	head -n 40 "$tmp/.tap" | sed 's/^/#   /'
	return 1
}

is() { # GOT WANT NAME
	local rc=0
	[ "$1" = "$2" ] || rc=1
	tap_result "$rc" "$3" && return
	diag "  got:"
	diag "$1"
	diag "  want:"
	diag "$2"
	return 1
}

like() { # TEXT REGEX NAME
	local rc=0
	printf '%s\n' "$1" | grep -Eq -- "$2" || rc=1
	tap_result "$rc" "$3" && return
	diag "  no match for /$2/ in:"
	diag "$1"
	return 1
}

skip() { # N WHY
	local i
	for ((i = 0; i < $1; i++)); do
		tap_run=$((tap_run + 1))
		echo "ok $tap_run # SKIP $2"
	done
}

skip_all() { # WHY; before the first check
	echo "1..0 # SKIP $1"
	exit 0
}

tap_done() {
	echo "1..$tap_run"
	[ "$tap_failed" -eq 0 ] && [ "$tap_run" -gt 0 ]
	exit
}
