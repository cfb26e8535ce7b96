#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# style.sh - what of doc/style.md a script can see
#
# Each rule is shown a planted line first, so that a rule which finds nothing is known to look.

: "${top_srcdir:=.}"
. "$top_srcdir/tests/tap.sh"

sources() { # TREE: what is written by hand here
	(cd "$1" && {
		find lib include tools standin tests examples bench inject doc m4 -type f \
			\( -name '*.[ch]' -o -name '*.sh' -o -name '*.inc' -o -name '*.m4' -o -name '*.map' \
			-o -name '*.cmake*' -o -path 'bench/*.py' -o -path bench/papers -o -path bench/strategies \) \
			! -path 'tests/data/*' ! -name 'libtool.m4' ! -name 'lt*.m4' 2>/dev/null
		for f in configure.ac Makefile.am bootstrap quickstart .ci/run debian/rules debian/symbols.awk \
			debian/tests/consumer debian/tests/tool; do
			[ ! -e "$f" ] || echo "$f"
		done
	} | LC_ALL=C sort)
}

spdx() { # TREE; fragments of the Makefile are lists, not sources
	(cd "$1" && sources . | grep -v '\.inc$' | while read -r f; do
		head -n 2 "$f" | grep -q 'SPDX-License-Identifier: Apache-2.0' || echo "$f: no SPDX line at its head"
	done)
}

# Lines and their white space. Columns count tabs as 8.
lines() { # TREE
	(cd "$1" && sources . | xargs -r awk '
	function bad(why) { print FILENAME ":" FNR ": " why }
	{
		col = 0
		if (length($0) > 15) {
			n = split($0, piece, "\t")
			for (i = 1; i <= n; i++)
				col = (i > 1 ? col + 8 - col % 8 : 0) + length(piece[i])
			if (col > 120)
				bad("longer than 120 columns")
		}
	}
	/[ \t]$/ { bad("white space at the end") }
	/\r/ { bad("carriage return") }
	/^ +\t/ || /^\t+ +\t/ { bad("a tab behind spaces") }
	FILENAME !~ /style\.sh$/ && /(^|[^A-Za-z_])(TODO|FIXME|XXX)([^A-Za-z_]|$)/ { bad("something left to do") }
	')
}

# Sizes: no file over 600 lines, no function over 110 (they begin and end in column 0).
sizes() { # TREE
	(cd "$1" && find lib tools standin include tests -name '*.[ch]' ! -path 'tests/data/*' 2>/dev/null |
		LC_ALL=C sort | xargs -r awk '
	function ended() { if (name && len > 600 && name !~ /^(tests|include)\//) print name ": " len " lines" }
	FNR == 1 { ended(); name = FILENAME; open = 0 }
	{ len = FNR }
	/^\{/ { open = FNR }
	/^\}/ {
		n = FNR - open - 1
		if (open && n > 110)
			print FILENAME ":" open ": a function of " n " lines"
		open = 0
	}
	END { ended() }')
}

# The library never prints, exits or aborts; only lib/runtime has a default log.
quiet() { # TREE
	(cd "$1" && find lib -name '*.[ch]' 2>/dev/null | LC_ALL=C sort | xargs -r awk '
	{ line = $0; gsub(/"([^"\\]|\\.)*"/, "\"\"", line); sub(/\/\*.*/, "", line) }
	line ~ /^ \*/ { next }
	line ~ /(^|[^A-Za-z0-9_.>])(v?printf|puts|putchar|perror|exit|_exit|abort|system)[ ]*\(/ {
		print FILENAME ":" FNR ": a library does not do this: " $0
	}
	FILENAME !~ /^lib\/runtime\// &&
		line ~ /(^|[^A-Za-z0-9_])stderr([^A-Za-z0-9_]|$)/ {
		print FILENAME ":" FNR ": only lib/runtime logs: " $0
	}')
}

# What crosses files is called um_*.
names() { # TREE
	(cd "$1" && find lib standin tools/formats tools/play tools/pool tools/probe tools/report tools/schemes \
		-name '*.h' 2>/dev/null | LC_ALL=C sort | xargs -r awk '
	/^typedef struct/ { print FILENAME ":" FNR ": no typedef for structs" }
	/^struct [a-z]/ && $2 !~ /^um(adv)?(_|$)/ { print FILENAME ":" FNR ": not um_*: " $2 }
	/^[a-z].*[ *][a-z_0-9]+\(.*[;,]$/ && !/^(static|typedef|return|\/)/ {
		f = $0; sub(/\(.*/, "", f); sub(/.*[ *]/, "", f)
		if (f !~ /^um(adv)?_/) print FILENAME ":" FNR ": not um_*: " f
	}')
}

# A label of a test is a statement: fewer than three words are none. One with a format or a variable has more when it is
# printed.
labels() { # TREE
	(cd "$1" && find tests \( -name '*.[ch]' -o -name '*.sh' \) ! -path 'tests/data/*' 2>/dev/null | LC_ALL=C sort |
		xargs -r awk '
	function look(line,   label) {
		label = ""
		if (FILENAME ~ /\.sh$/ && match(line, /^[ \t]*(ok|survives|fails [0-9]+) "[^"]*"/))
			label = substr(line, RSTART, RLENGTH)
		else if (match(line, FILENAME ~ "[.]sh$" ? " \"[^\"]*\"$" : "(^\t*|, )\"[^\"]*\"[)]+( [{]|;)$"))
			label = substr(line, RSTART, RLENGTH)
		sub(/^[^"]*"/, "", label)
		sub(/".*/, "", label)
		if (label != "" && label !~ /[%$\\]/ && split(label, word, " ") < 3)
			print FILENAME ":" FNR ": a label is a statement: " label
	}
	FNR == 1 { open = 0 }
	FILENAME ~ /\.sh$/ {
		if ($0 ~ /^[ \t]*(ok|survives|fails [0-9]+) "/ || $0 ~ /^[ \t]*(is|like) .* "[^"]*"$/)
			look($0)
		next
	}
	/(^|[^A-Za-z0-9_])(ok|is_int|is_u64|is_str)\(/ && !/#define/ { open = 1 }
	open && /"\)*( \{|;)$/ { look($0) }
	/;$|\{$/ { open = 0 }
	')
}

planted() { # CHECK NAME FILE TEXT
	rm -rf "$tmp/tree"
	mkdir -p "$tmp/tree/$(dirname "$3")"
	printf '%b\n' "$4" >"$tmp/tree/$3"
	local out
	out=$($1 "$tmp/tree")
	like "$out" "^$3" "seen: $2"
}
long=$(printf '%0130d' 0)
body=$(printf 'int f(void)\\n{\\n'; for ((i = 0; i < 111; i++)); do printf '\\tx++;\\n'; done; printf '}')
planted spdx "no licence line" lib/base/a.c 'int x;'
planted lines "a long line" lib/base/a.c "/* $long */"
planted lines "a line long by its tabs" lib/base/a.c "$(printf '\\t%.0s' {1..13})int a_name_that_is_long;"
planted lines "white space at the end" lib/base/a.c 'int x; '
planted lines "spaces before a tab" lib/base/a.c '  \tint x;'
planted lines "something left to do" lib/base/a.c '/* TO''DO: all of it */'
planted sizes "a long function" lib/base/a.c "$body"
planted sizes "a long file" lib/base/a.c "$(printf 'int x;\\n%.0s' {1..601})"
planted quiet "printing" lib/base/a.c '\tprintf("hi");'
planted quiet "exiting" lib/base/a.c '\texit(1);'
planted quiet "logging outside lib/runtime" lib/gpu/a.c '\tfprintf(stderr, "hi");'
planted names "a function without prefix" lib/base/a.h 'int add(int a);'
planted names "a struct without prefix" lib/base/a.h 'struct tree {'
planted labels "a label of two words" tests/base/a.c '\tis_int(n, 2, "two slots");'
planted labels "a short label on its own line" tests/base/a.c '\tis_int(a_long_call(n),\n\t       2, "two slots");'
planted labels "a short label of a shell test" tests/base/a.sh 'is "$a" "b" "csv"'
planted labels "a short label before a command" tests/base/a.sh 'fails 2 "no file" umadvise report'

is "$(spdx "$top_srcdir")" "" "every source says its licence"
is "$(lines "$top_srcdir")" "" "lines and white space follow the style"
is "$(sizes "$top_srcdir")" "" "files and functions keep their size limits"
is "$(quiet "$top_srcdir")" "" "the library is quiet"
is "$(names "$top_srcdir")" "" "names of what crosses files"
is "$(labels "$top_srcdir")" "" "labels of tests are statements"
tap_done
