# SPDX-License-Identifier: Apache-2.0
#
# symbols.awk - the symbols file of libumadvise0, from lib/libumadvise.map
#
# A node of the map begins with its name and the first release that has it: `UMADVISE_0 { /* 0.1.0 */`.

BEGIN {
	print "libumadvise.so.0 libumadvise0 #MINVER#"
	print "* Build-Depends-Package: libumadvise-dev"
}

$2 == "{" {
	node = $1
	release = $4
	if ($3 != "/*" || release !~ /^[0-9]+[.][0-9]+[.][0-9]+$/) {
		printf "%s:%d: no release at the node %s\n", FILENAME, FNR, node >"/dev/stderr"
		bad = 1
		exit 1
	}
	print " " node "@" node " " release
}

/^\t[A-Za-z_0-9]+;$/ {
	print " " substr($1, 1, length($1) - 1) "@" node " " release
}

END {
	if (!bad && !node) {
		printf "%s: no node\n", FILENAME >"/dev/stderr"
		exit 1
	}
}
