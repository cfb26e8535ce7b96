#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# umadvise report --format html: a page that is well-formed, fetches nothing, shows what the other forms say, and stands
# names of any kind. With a Chromium it is opened, too, wide and narrow.
. "${top_srcdir:=.}/tests/tap.sh"

python3 -c 'import sqlite3' 2>/dev/null || skip_all "no Python with SQLite"
data=$top_srcdir/tests/data
report() { "$UMADVISE" report "$@"; }

# Reads a page: every element ends where it has to, nothing is fetched, and what is in it can be asked for.
cat >"$tmp/page.py" <<'END'
import html.parser, json, re, sys
class Page(html.parser.HTMLParser):
    VOID = {"meta", "br", "hr", "img", "link", "input"}
    def __init__(self, text):
        super().__init__()
        self.open, self.bad, self.count, self.texts, self.keys, self.titles = [], [], {}, [], {}, []
        self.key = None
        self.feed(text)
        self.close()
        if self.open:
            self.bad.append("not closed: %s" % self.open)
    def handle_starttag(self, tag, attrs):
        self.count[tag] = self.count.get(tag, 0) + 1
        a = dict(attrs)
        if len(a) != len(attrs):
            self.bad.append("an attribute twice: %s" % attrs)
        for name in a:
            if name in ("src", "href", "srcset", "action", "data", "poster") or name.startswith("on"):
                self.bad.append("%s of %s" % (name, tag))
        if tag in ("link", "iframe", "object", "embed", "base", "img", "form"):
            self.bad.append(tag)
        if tag == "tr":
            self.key = a.get("data-key")
        if tag == "td" and self.key:
            self.keys[self.key] = a.get("data-v")
        if "title" in a:
            self.titles.append(a["title"])
        if tag not in self.VOID:
            self.open.append(tag)
    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)
    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.bad.append("ends, and did not begin: %s" % tag)
    def handle_data(self, text):
        if not self.open or self.open[-1] not in ("style", "script"):
            self.texts.append(text)
raw = open(sys.argv[1], "rb").read().decode()  # UTF-8, or it fails
p = Page(raw)
style = re.findall(r"<style>(.*?)</style>", raw, re.S)
if re.search(r"url\(|@import|@font-face", "".join(style)):
    p.bad.append("style fetches")
if re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", raw):
    p.bad.append("control characters")
for number in re.findall(r'(?: d|viewBox|left|data-(?:level|in|out|faults|first|width|span))="([^"]*)"', raw):
    if re.search("nan|inf|e\\+|%!", number):
        p.bad.append("a drawing with %s" % number[:80])
text = " ".join(p.texts)
exec(sys.argv[2])
END
page() { python3 "$tmp/page.py" "$@"; }

# How it looks to a browser: no wider than the window, and nothing asked for. To it a page of a sanitized tool is the
# same as another.
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
[ -z "${SANITIZE-}" ] || chromium=''
widths() { # FILE: how much wider the page is than windows of 1280 and 400 pixels, and how much it asks for
	python3 - "$1" "$tmp/probe.html" <<'END'
import sys
text = open(sys.argv[1], encoding="utf-8").read()
probe = """<script>document.title = document.documentElement.scrollWidth - document.documentElement.clientWidth
 + " " + performance.getEntriesByType("resource").length</script></body>"""
open(sys.argv[2], "w", encoding="utf-8").write(text.replace("</body>", probe))
END
	# A window of a headless browser is no narrower than 500 pixels: a frame is.
	for width in 1280 400; do
		cat <<END
<iframe src="probe.html" style="width:${width}px;height:2000px;border:0"
	onload="document.getElementById('t$width').textContent = 'says ' + this.contentDocument.title"></iframe>
<p id="t$width"></p>
END
	done >"$tmp/frames.html"
	"$chromium" --headless --no-sandbox --disable-gpu --allow-file-access-from-files \
		--user-data-dir="$tmp/profile" --virtual-time-budget=5000 --window-size=1400,4200 \
		--dump-dom "file://$tmp/frames.html" 2>/dev/null |
		sed -n 's/.*"t\([0-9]*\)">says \([-0-9 ]*\).*/\1: \2/p'
}
looks() { # NAME FILE
	local seen width
	[ -n "$chromium" ] || {
		skip 2 "no Chromium"
		return
	}
	seen=$(widths "$2")
	for width in 1280 400; do
		is "$(grep "^$width:" <<<"$seen")" "$width: 0 0" "$1: at $width pixels nothing is cut off or fetched"
	done
}

# Simulated runs: with faults, and with hints.
for strategy in on-demand lookahead; do
	f=$tmp/$strategy
	ok "$strategy: the workload is simulated" \
		"$UMADVISE" simulate "$data/vgg16.umtrace.gz" --oversubscribe 1.5 --iterations 4 \
		--strategy "$strategy" --export "$f.sqlite"
	ok "$strategy: a page" report "$f.sqlite" --format html -o "$f.html"
	ok "$strategy: and JSON" report "$f.sqlite" --format json -o "$f.json"
	is "$(page "$f.html" 'print(p.bad)')" "[]" "$strategy: well-formed, and fetches nothing"
	is "$(page "$f.html" 'd = json.load(open(sys.argv[3]))["summary"]
print([k for k in d if k != "missing" and str(d[k]) != p.keys.get(k)], len(p.keys) > 10)' "$f.json")" "[] True" \
		"$strategy: the sums are those of the JSON"
	is "$(page "$f.html" 'd = json.load(open(sys.argv[3]))["summary"]
print([k for k in ("gpu_page_faults", "um_h2d_bytes", "um_d2h_bytes", "iteration_median_ns")
       if not any(t.split(" ")[0] == str(d[k]) for t in p.titles)])' "$f.json")" "[]" "$strategy: and the tiles'"
	looks "$strategy" "$f.html"
done
is "$(page "$tmp/on-demand.html" 'print("Iterations up close" in text, "Stalls by tensor" in text,
    p.count["svg"] > 12)')" "True True True" "the page has iterations up close and the heat map"
ok "the page is written again" report "$tmp/on-demand.sqlite" --format html -o "$tmp/again.html"
ok "gives the same bytes" cmp "$tmp/on-demand.html" "$tmp/again.html"
page_rows() { page "$1" 'print(raw.count("<tr>"))'; }
ok "tables can be chosen" report "$tmp/on-demand.sqlite" --format html --report ops:rows=2 -o "$tmp/few.html"
is "$(page_rows "$tmp/few.html")" "3" "tables of the page have their rows"

# Names as bad as they come: markup, quotes, bytes that are no text, controls, what turns writing around, very long.
cp "$tmp/on-demand.sqlite" "$tmp/names.sqlite"
python3 - "$tmp/names.sqlite" <<'END'
import sqlite3, sys
c = sqlite3.connect(sys.argv[1])
names = [b"<script>alert(1)</script>", b"\"><img src=x onerror=alert(1)>", b"'); drop", b"\xff\xfe\xc3(\xed\xa0\x80",
         b"a\x01\x1b[31mb\x7f\xc2\x85", "\u202egnp.exe \u200b".encode(), b"&amp;&lt;", b"</style></title></svg>",
         b"void k<" + b"std::tuple<int, " * 640 + b">()", "\u00e4\u5b57".encode() * 300]
ids = [r[0] for r in c.execute("SELECT DISTINCT shortName FROM CUPTI_ACTIVITY_KIND_KERNEL ORDER BY 1")]
for i, name in zip(ids, names):
    c.execute("UPDATE StringIds SET value = CAST(? AS TEXT) WHERE id = ?", (name, i))
c.execute("UPDATE NVTX_EVENTS SET text = text || ' <b>\"' WHERE text LIKE 'iteration%'")
c.commit()
END
cp "$tmp/names.sqlite" "$tmp/<b>&\"'.sqlite"
ok "names of any kind" report "$tmp/<b>&\"'.sqlite" --format html -o "$tmp/names.html"
is "$(page "$tmp/names.html" 'print(p.bad, p.count["script"], p.count.get("b", 0) == len(re.findall("<b[ >]", raw)),
    "<script>alert(1)</script>" in text, "\u202e" in raw, "\u200b" in raw)')" "[] 1 True True False False" \
	"names are only text"
is "$(page "$tmp/names.html" 'print(any(len(t) > 10000 and t.endswith(">()") for t in p.titles),
    max(len(t) for t in p.texts) < 700)')" "True True" "long ones are shortened, and whole in their title"
looks "names" "$tmp/names.html"

# Little to show: a page all the same, which says what is missing.
python3 - "$tmp/on-demand.sqlite" "$tmp/bare.sqlite" <<'END'
import shutil, sqlite3, sys
shutil.copy(sys.argv[1], sys.argv[2])
c = sqlite3.connect(sys.argv[2])
for t in ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUDA_UM_GPU_PAGE_FAULT_EVENTS"):
    c.execute("DROP TABLE " + t)
c.execute("DELETE FROM META_DATA_CAPTURE")
c.commit()
END
fails 3 "a file without data of unified memory has a page" report "$tmp/bare.sqlite" --format html -o "$tmp/bare.html"
is "$(page "$tmp/bare.html" 'print(p.bad, "--cuda-um-gpu-page-faults=true" in text)')" "[] True" \
	"a page that names the switch"
looks "bare" "$tmp/bare.html"
fails 2 "two files without --merge are refused" report "$tmp/on-demand.sqlite" "$tmp/bare.sqlite" --format html
tap_done
