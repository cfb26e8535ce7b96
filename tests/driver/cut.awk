# SPDX-License-Identifier: Apache-2.0
#
# cut.awk - prints a function of the driver, word for word: awk -v name=FUNCTION -f cut.awk FILE
#
# A definition begins in the first column and ends with a brace there; a prototype ends with a semicolon.

$0 ~ "^[a-z].*[ *]" name "\\(" { inside = 1; text = "" }
inside { text = text $0 "\n" }
inside && /^}/ { printf "%s\n", text; exit }
inside && /;$/ && !/^ / { inside = 0 }
