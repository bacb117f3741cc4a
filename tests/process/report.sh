#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests `wattshare report` on the trace of two programs that share a GPU. It fails if the page does
# not name them and their kernel, if its joules are not those of the trace, if nobody waited for
# anybody, if it needs another file, or if a browser (where there is one) does not show it.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
start_daemon --gpus t400 --clock scaled
"$wattshare" trace --out "$tmp/trace.json" 2>"$tmp/trace.err" &
helper_pid=$!
i=0
until [ -s "$tmp/trace.json" ]; do
    i=$((i + 1))
    [ $i -lt 600 ] || fail "the trace does not begin"
    sleep 0.1
done
task=one client "$cuda/drv_matmul" 128 60 >"$tmp/out.1" 2>&1 &
p1=$!
task='<b>two' client "$cuda/drv_matmul" 128 40 >"$tmp/out.2" 2>&1 &
p2=$!
wait "$p1" && wait "$p2" || { cat "$tmp"/out.? >&2; fail "a client"; }
kill -INT $helper_pid
wait $helper_pid || { cat "$tmp/trace.err"; fail "trace"; }
helper_pid=

verb=report
run 0 "" "$tmp/trace.json" --out "$tmp/page.html"
unset verb
python3 - "$tmp" <<'EOF' || fail "the page is not what the trace says"
import html.parser, json, sys
events = json.load(open(sys.argv[1] + "/trace.json"))["traceEvents"]
slices = [e for e in events if e["ph"] == "X" and e["pid"] < 1000] # the others: clients that wait
page = open(sys.argv[1] + "/page.html").read()
class Page(html.parser.HTMLParser):
    tables, row, text, links, at = [], None, "", [], []
    def handle_starttag(self, tag, attrs):
        self.at.append(tag)
        self.links += [v for k, v in attrs if k in ("src", "href")]
        if tag == "table": self.tables.append([])
        if tag == "tr": self.tables[-1].append([])
        if tag in ("td", "th"): self.tables[-1][-1].append("")
        if tag in ("meta",): self.at.pop()
    def handle_endtag(self, tag):
        assert self.at.pop() == tag, tag
    def handle_startendtag(self, tag, attrs): pass
    def handle_data(self, data):
        if "td" in self.at or "th" in self.at: self.tables[-1][-1][-1] += data
        self.text += data
p = Page()
p.feed(page)
assert not p.links and "<script" not in page, p.links
clients, kernels, waits = p.tables
joules = sum(e["args"]["energy_uj"] for e in slices) / 1e6
assert abs(sum(float(r[4]) for r in clients[1:]) - joules) < 1e-3, (clients, joules)
assert abs(sum(float(r[4]) for r in kernels[1:]) - joules) < 1e-3, (kernels, joules)
assert sum(int(r[1]) for r in clients[1:]) == len(slices), clients
assert sorted(r[0].split(",")[0] for r in clients[1:]) == ["<b>two", "one"], clients
assert ["matmul", "100"] in [r[:2] for r in kernels], kernels
waited = sum(e["args"].get("waited_us", 0) for e in slices) / 1e3
assert abs(sum(float(r[3]) for r in clients[1:]) - waited) < 0.1, (clients, waited)
assert len(waits) > 1 and all(0 < float(r[2]) <= waited + 0.1 for r in waits[1:]), waits
assert p.text.count("t400") == 1 and "%d operations of 2 clients" % len(slices) in p.text
EOF
ok "the page says what the trace says"
echo '{"no": 1}' >"$tmp/wrong.json"
verb=report
run 1 "is no trace; wattshare trace" "$tmp/wrong.json"
run 1 "is no trace; wattshare trace" "$tmp/nothing.json"
run 2 "report needs the file of a trace"
unset verb

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -z "$browser" ]; then
    echo "skipped: the page in a browser: there is no chromium here" >&2
elif ! timeout 100 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$tmp/profile" \
    --virtual-time-budget=1000 --dump-dom "file://$tmp/page.html" >"$tmp/dom" 2>"$tmp/browser"; then
    tail -n 3 "$tmp/browser" >&2
    echo "skipped: the page in a browser: chromium does not run here" >&2
else
    grep -q '<svg .*aria-label="Who worked when"' "$tmp/dom" && grep -q '<rect ' "$tmp/dom" || { head -c 2000 "$tmp/dom"; fail "the browser shows no timeline"; }
    grep -q '&lt;b&gt;two' "$tmp/dom" || fail "the browser takes a task's name for markup"
    ok "the page in a browser"
fi
