/* SPDX-License-Identifier: Apache-2.0 */
#include "svg.h"

#include "base/text.h"

void svg_begin(FILE *to, int wide, int high)
{
	fprintf(to,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "
		"font-family=\"sans-serif\" font-size=\"12\" fill=\"#333\">\n"
		"<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
		wide, high, wide, high, wide, high);
}

void svg_text(FILE *to, const char *s)
{
	for (size_t n; *s; s += n ? n : 1) {
		n = um_text_utf8(s);
		if (*s == '&')
			fputs("&amp;", to);
		else if (*s == '<')
			fputs("&lt;", to);
		else if (*s == '>')
			fputs("&gt;", to);
		else if (um_text_hidden(s, n))
			fputs("\xef\xbf\xbd", to);
		else
			fwrite(s, 1, n, to);
	}
}

double svg_step(double all, int n)
{
	double step = 1e-6;

	while (step * n < all)
		step *= step * n * 2 >= all ? 2 : step * n * 5 >= all ? 5 : 10;
	return step;
}
