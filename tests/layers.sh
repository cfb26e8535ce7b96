#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# layers.sh - who includes whom: the arrows between rooms, read off the include lines
#
# doc/style.md has the table. A planted violation of each rule shows that the rule is checked.

: "${top_srcdir:=.}"
. "$top_srcdir/tests/tap.sh"

# Prints one line per include that a folder's files may not have. $1: the tree.
violations() {
	(cd "$1" && find lib tools tests examples inject include -name '*.[ch]' 2>/dev/null | LC_ALL=C sort |
		xargs -r awk '
		BEGIN {
			sees["base"] = " "
			sees["model"] = " base "
			n = split("gpu io record learn plan report", r, " ")
			for (i = 1; i <= n; i++)
				sees[r[i]] = " base model "
			sees["replay"] = sees["probe"] = " base model gpu "
			sees["standin"] = " base model gpu io "
			sees["peers"] = " base model gpu plan "
			all = " base model gpu io record learn plan report replay probe standin peers "
			# Libraries that only one door opens.
			door["sqlite3.h"] = "io"
			door["jansson.h"] = door["zlib.h"] = "io"
			door["nvtx3/nvToolsExt.h"] = "io"
			door["dlfcn.h"] = door["cupti.h"] = "gpu standin"
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
			dir = FILENAME
			sub(/[^\/]*$/, "", dir)
			room = place == "lib" && n > 2 ? part[2] : ""
			if (room != "" && !(room in sees))
				bad("no such room: " room)
		}
		!/^[ \t]*#[ \t]*include/ { next }
		{
			quoted = $0 ~ /include[ \t]*"/
			name = $0
			sub(/^[^"<]*["<]/, "", name)
			sub(/[">].*/, "", name)
			to = name ~ /\// ? substr(name, 1, index(name, "/") - 1) : ""
			private = index(all, " " to " ") && to != ""
		}
		place == "include" && (quoted || private) {
			bad("the public header includes only the C library: " name)
			next
		}
		(place == "examples" || place == "inject") && (quoted || private) {
			bad(place " sees only <umadvise.h>: " name)
			next
		}
		!quoted && private { bad("a room is spelled in quotes: " name); next }
		room != "" && name ~ /umadvise\.h$/ {
			bad("the public header belongs to the front desk: " name)
			next
		}
		room != "" && !quoted && name in door && !index(" " door[name] " ", " " room " ") {
			bad(name " is for " door[name] " alone")
			next
		}
		!quoted { next }
		room != "" && to == "" { bad("spell the room: " name); next }
		room != "" && to != room && !index(sees[room], " " to " ") { bad(room " may not see " name); next }
		room == "" && to != "" && !private { bad("no such room: " name); next }
		# A private header beside the file, or of the folder it belongs to.
		room == "" && to == "" && name != "umadvise.h" && !exists(dir name) && !exists(place "/" name) &&
			!(place == "tests" && (exists("tools/" name) || exists("examples/" name))) &&
			!exists("lib/" name) {
			bad("spell the room: " name)
		}
		')
}

found=$(violations "$top_srcdir")
is "$found" "" "every include follows an arrow"

planted() { # NAME FILE LINE
	rm -rf "$tmp/tree"
	mkdir -p "$tmp/tree/$(dirname "$2")"
	printf '%s\n' "$3" >"$tmp/tree/$2"
	local out
	out=$(violations "$tmp/tree")
	like "$out" "^$2:1: " "seen: $1"
}
planted "base includes model" lib/base/a.c '#include "model/event.h"'
planted "model includes io" lib/model/a.h '#include "io/umtrace.h"'
planted "gpu includes io" lib/gpu/a.c '#include "io/umtrace.h"'
planted "record includes learn" lib/record/a.c '#include "learn/learn.h"'
planted "plan includes gpu" lib/plan/a.c '  # include "gpu/gpu.h"'
planted "replay includes plan" lib/replay/a.c '#include "plan/planner.h"'
planted "plan includes peers" lib/plan/a.c '#include "schemes/schemes.h"'
planted "a room not spelled" lib/plan/a.c '#include "planner.h"'
planted "a room in angle brackets" lib/plan/a.c '#include <model/plan.h>'
planted "a way out of the room" lib/plan/a.c '#include "../model/plan.h"'
planted "a room includes the public header" lib/gpu/a.c '#include <umadvise.h>'
planted "an unknown room" lib/cellar/a.c 'int x;'
planted "JSON outside io" lib/plan/a.c '#include <jansson.h>'
planted "SQLite outside io" lib/report/a.c '#include <sqlite3.h>'
planted "an example looks inside" examples/a.c '#include "sim/sim.h"'
planted "the public header looks inside" include/umadvise.h '#include "model/event.h"'
planted "a tool does not spell the room" tools/a.c '#include "umtrace.h"'
planted "a test does not spell the room" tests/test_a.c '#include "event.h"'

mkdir -p "$tmp/good/lib/replay" "$tmp/good/lib/io"
printf '#include "replay/a.h"\n#include "gpu/gpu.h"\n#include <stdio.h>\n' >"$tmp/good/lib/replay/a.c"
printf '#include <jansson.h>\n#include "base/diag.h"\n' >"$tmp/good/lib/io/a.c"
printf '#include "io/umtrace.h"\n#include "a.h"\n#include <umadvise.h>\n' >"$tmp/good/lib/a.c"
: >"$tmp/good/lib/a.h"
found=$(violations "$tmp/good")
is "$found" "" "allowed includes are let through"

tap_done
