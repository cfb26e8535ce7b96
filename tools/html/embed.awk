# SPDX-License-Identifier: Apache-2.0
#
# Files become C: an array of lines each, called by the file's ending. Comments of one line stay behind.
BEGIN {
	print "/* SPDX-License-Identifier: Apache-2.0"
	print " *"
	print " * Made by tools/html/embed.awk."
	print " */"
	print "#include <stddef.h>"
}
FNR == 1 {
	if (open)
		print "\tNULL,\n};"
	open = 1
	name = FILENAME
	sub(/.*\./, "", name)
	print "\nextern const char *const html_" name "[];"
	print "const char *const html_" name "[] = {"
}
/^[ \t]*\/\*.*\*\/[ \t]*$/ { next }
{
	sub(/^[ \t]+/, "")
	gsub(/\\/, "&&")
	gsub(/"/, "\\\"")
	if ($0 != "")
		print "\t\"" $0 "\\n\","
}
END { print "\tNULL,\n};" }
