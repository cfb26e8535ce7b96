#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# layers.sh - which directory includes which, read off the include lines
#
# doc/style.md has the table. The test plants a violation of each rule to show that the rule is checked.
# structure.py reads the calls.

: "${top_srcdir:=.}"
. "$top_srcdir/tests/tap.sh"

# Prints one line per include that a directory's files may not have. $1: the tree.
violations() {
	(cd "$1" && find lib tools standin tests examples inject include -name '*.[ch]' 2>/dev/null | LC_ALL=C sort |
		xargs -r awk '
		BEGIN {
			# What each directory sees besides itself; doc/style.md has the same table.
			sees["base"] = " "
			sees["arbiter"] = sees["kernel"] = sees["model"] = " base "
			n = split("gpu io record learn plan report", r, " ")
			for (i = 1; i <= n; i++)
				sees[r[i]] = " base model "
			sees["sim"] = sees["replay"] = " base model gpu "
			sees["devices"] = " base model gpu sim "
			sees["runtime"] = " base arbiter model gpu io devices record learn plan replay "
			sees["inject"] = " base kernel model gpu runtime "
			sees["formats"] = " base model io "
			sees["probe"] = " base model gpu sim "
			sees["schemes"] = " base model gpu sim plan "
			sees["bound"] = " base model plan "
			sees["pool"] = " base model plan "
			sees["play"] = sees["runtime"] "sim runtime formats "
			sees["standin"] = " base kernel model gpu io sim "
			all = "base arbiter kernel model gpu io sim devices record learn plan replay runtime inject"
			n = split(all, r, " ")
			for (i = 1; i <= n; i++)
				home[r[i]] = "lib"
			n = split("formats probe schemes bound pool play report", r, " ")
			for (i = 1; i <= n; i++)
				home[r[i]] = "tools"
			home["standin"] = "standin"
			public = " runtime inject play "
			# Libraries that only these directories open.
			door["sqlite3.h"] = "formats"
			door["jansson.h"] = "io formats standin"
			door["zlib.h"] = "io formats"
			door["nvtx3/nvToolsExt.h"] = "io"
			door["dlfcn.h"] = "gpu inject kernel standin bound"
			door["cupti.h"] = "gpu standin"
			door["zstd.h"] = door["lz4.h"] = "standin"
		}
		function bad(why) { print FILENAME ":" FNR ": " why }
		function exists(path,   line, rc) {
			rc = (getline line < path) >= 0
			close(path)
			return rc
		}
		FNR == 1 {
			n = split(FILENAME, part, "/")
			place = part[1] # lib, tools, tests, examples, ...
			here = FILENAME
			sub(/[^\/]*$/, "", here)
			dir = place == "standin" ? place : (place == "lib" || place == "tools") && n > 2 ? part[2] : ""
			if (dir != "" && (!(dir in sees) || home[dir] != place))
				bad("unknown directory: " place "/" dir)
			if (dir == "" && place == "lib")
				bad("files of lib lie in its directories")
		}
		!/^[ \t]*#[ \t]*include/ { next }
		{
			quoted = $0 ~ /include[ \t]*"/
			name = $0
			sub(/^[^"<]*["<]/, "", name)
			sub(/[">].*/, "", name)
			to = name ~ /\// ? substr(name, 1, index(name, "/") - 1) : ""
			private = to in sees
		}
		place == "include" && (quoted || private) {
			bad("the public header includes only the C library: " name)
			next
		}
		# A header of examples/ follows the same rule.
		place == "examples" && quoted && to == "" && exists(here name) { next }
		(place == "examples" || place == "inject") && (quoted || private) {
			bad(place " includes only <umadvise.h>: " name)
			next
		}
		!quoted && private { bad("a private header is included in quotes: " name); next }
		dir != "" && name ~ /umadvise\.h$/ && !index(public, " " dir " ") {
			bad("only lib/runtime, lib/inject and tools/play include the public header: " name)
			next
		}
		dir != "" && !quoted && name in door && !index(" " door[name] " ", " " dir " ") {
			bad(name " is for " door[name] " alone")
			next
		}
		!quoted { next }
		dir != "" && to == "" && name != "umadvise.h" { bad("spell the directory: " name); next }
		dir != "" && to != "" && to != dir && !index(sees[dir], " " to " ") {
			bad(dir " may not include " name)
			next
		}
		dir == "" && to != "" && !private && !exists("tests/" name) { bad("unknown directory: " name); next }
		# A private header beside the file, or of the directory it belongs to.
		dir == "" && to == "" && name != "umadvise.h" && !exists(here name) && !exists(place "/" name) &&
			!(place == "tests" && (exists("tools/" name) || exists("examples/" name))) {
			bad("spell the directory: " name)
		}
		')
}

found=$(violations "$top_srcdir")
is "$found" "" "every include follows the table"

# Of the runtime: the modules that know the context, and the circles among the others' includes. $1: the tree. A module
# is a .c and its .h; the files of the context are one.
runtime_arrows() {
	(cd "$1/lib/runtime" && grep -H '^#include "runtime/' -- *.[ch] |
		sed -E 's,\.[ch]:#include "runtime/, ,; s,\.h".*,,; s,context_[a-z]+,context,g' |
		awk '$1 != $2' | sort -u)
}
runtime_violations() {
	runtime_arrows "$1" | awk '$2 == "context" && $1 != "api" { print $1 " may not know the context" }'
	runtime_arrows "$1" | tsort 2>&1 >/dev/null |
		sed 's/^tsort: -: input contains a loop:$/a circle:/; s/^tsort: //'
	(cd "$1/lib/runtime" && grep -l 'struct umadv \*' -- *.[ch] | grep -v '^context\|^api\.c$' |
		sed 's/$/ names the context/')
}
is "$(runtime_violations "$top_srcdir")" "" \
	"includes among files of the runtime go from the context to its members"

planted_runtime() { # NAME FILE TEXT WANT
	rm -rf "$tmp/tree"
	mkdir -p "$tmp/tree/lib/runtime"
	printf '#include "runtime/b.h"\n' >"$tmp/tree/lib/runtime/a.h"
	printf '#include "runtime/a.h"\n' >"$tmp/tree/lib/runtime/context.h"
	: >"$tmp/tree/lib/runtime/b.h"
	printf '%s\n' "$3" >"$tmp/tree/lib/runtime/$2"
	is "$(runtime_violations "$tmp/tree")" "$4" "seen: $1"
}
planted_runtime "a member that includes the context" b.c '#include "runtime/context.h"' \
	"$(printf '%s\n' "b may not know the context" "a circle:" a b context)"
planted_runtime "two members that include each other" b.c '#include "runtime/a.h"' "$(printf '%s\n' "a circle:" a b)"
planted_runtime "a member whose function takes the context" b.c 'void f(struct umadv *adv);' "b.c names the context"

planted() { # NAME FILE LINE
	rm -rf "$tmp/tree"
	mkdir -p "$tmp/tree/$(dirname "$2")"
	printf '%s\n' "$3" >"$tmp/tree/$2"
	local out
	out=$(violations "$tmp/tree")
	like "$out" "^$2:1: " "layers.sh reports that $1"
}
planted "base includes model" lib/base/a.c '#include "model/event.h"'
planted "model includes io" lib/model/a.h '#include "io/umtrace.h"'
planted "gpu includes io" lib/gpu/a.c '#include "io/umtrace.h"'
planted "gpu includes the simulator" lib/gpu/a.c '#include "sim/sim.h"'
planted "record includes learn" lib/record/a.c '#include "learn/learn.h"'
planted "plan includes gpu" lib/plan/a.c '  # include "gpu/gpu.h"'
planted "replay includes plan" lib/replay/a.c '#include "plan/planner.h"'
planted "a directory includes runtime" lib/replay/a.c '#include "runtime/context.h"'
planted "lib includes a directory of tools" lib/plan/a.c '#include "schemes/schemes.h"'
planted "runtime includes the simulator" lib/runtime/a.c '#include "sim/sim.h"'
planted "runtime includes a player" lib/runtime/a.c '#include "play/player.h"'
planted "an include without its directory" lib/plan/a.c '#include "planner.h"'
planted "a private include in angle brackets" lib/plan/a.c '#include <model/plan.h>'
planted "an include with dots" lib/plan/a.c '#include "../model/plan.h"'
planted "a directory includes the public header" lib/gpu/a.c '#include <umadvise.h>'
planted "a directory is unknown" lib/cellar/a.c 'int x;'
planted "a directory of tools lies in lib" lib/report/a.c 'int x;'
planted "a file lies in lib itself" lib/a.c 'int x;'
planted "plan includes a JSON library" lib/plan/a.c '#include <jansson.h>'
planted "report includes SQLite" tools/report/a.c '#include <sqlite3.h>'
planted "an example includes a private header" examples/a.c '#include "sim/sim.h"'
planted "a header of the examples includes a private header" examples/a.h '#include "sim/sim.h"'
planted "an example includes a header that the examples do not have" examples/a.c '#include "sim.h"'
planted "the public header includes a private one" include/umadvise.h '#include "model/event.h"'
planted "a tool omits the directory" tools/a.c '#include "umtrace.h"'
planted "a test omits the directory" tests/test_a.c '#include "event.h"'

mkdir -p "$tmp/good/lib/replay" "$tmp/good/lib/io" "$tmp/good/lib/runtime" "$tmp/good/tools/play"
printf '#include "replay/a.h"\n#include "gpu/gpu.h"\n#include <stdio.h>\n' >"$tmp/good/lib/replay/a.c"
printf '#include <jansson.h>\n#include "base/diag.h"\n' >"$tmp/good/lib/io/a.c"
printf '#include "io/umtrace.h"\n#include <umadvise.h>\n' >"$tmp/good/lib/runtime/a.c"
printf '#include "runtime/context.h"\n#include "umadvise.h"\n' >"$tmp/good/tools/play/a.c"
found=$(violations "$tmp/good")
is "$found" "" "allowed includes are accepted"

# Prints directories that call upwards or in circles, and files that call each other in circles, except in the
# directories that doc/style.md names.
circles() {
	python3 "$top_srcdir/tests/release/structure.py" --circles "$1" |
		grep -vE '^files:( (lib/sim|standin)/[a-z_]+\.c)+$'
}

calls() { # FILE NAME CALLED; adds a function that calls another one
	mkdir -p "$tmp/calls/$(dirname "$1")"
	printf 'int %s(void)\n{\n\treturn %s();\n}\n' "$2" "$3" >>"$tmp/calls/$1"
}

if command -v python3 >/dev/null; then
	calls lib/plan/a.c um_a um_b
	calls lib/plan/b.c um_b um_c
	is "$(circles "$tmp/calls")" "" "a chain of calls is no circle"
	calls lib/plan/c.c um_c um_a
	is "$(circles "$tmp/calls")" "files: lib/plan/a.c lib/plan/b.c lib/plan/c.c" "a circle of files is reported"
	rm -r "$tmp/calls"
	calls lib/base/a.c um_a um_b
	calls lib/model/b.c um_b um_strlen
	is "$(circles "$tmp/calls")" "upward: lib/base lib/model by lib/base/a.c lib/model/b.c um_b" \
		"a call up the table is reported"
	calls lib/model/b.c um_d um_a
	like "$(circles "$tmp/calls")" "directories: lib/base lib/model" "a circle of directories is reported"
	is "$(circles "$top_srcdir")" "" "no call points up the table, and no files call each other in a circle"
else
	skip 5 "no Python"
fi

tap_done
