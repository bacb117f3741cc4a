#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests `wattshare report` on the trace of two programs that share a GPU. It fails if the page does
# not name them and their kernel, if its joules are not those of the trace, if nobody waited for
# anybody, if its rows of other policies cannot be right, if it needs another file, or if a browser
# (where there is one) does not show it; or if a trace lacks the policy's decisions.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
record() { # record FILE: a trace of two programs
    "$wattshare" trace --out "$1" 2>"$tmp/trace.err" &
    helper_pid=$!
    i=0
    until [ -s "$1" ]; do
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
}
start_daemon --gpus t400 --clock scaled
record "$tmp/trace.json"

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
clients, kernels, waits, policies = p.tables
joules = sum(e["args"]["energy_uj"] for e in slices) / 1e6
assert abs(sum(float(r[4]) for r in clients[1:]) - joules) < 1e-3, (clients, joules)
assert abs(sum(float(r[4]) for r in kernels[1:]) - joules) < 1e-3, (kernels, joules)
assert sum(int(r[1]) for r in clients[1:]) == len(slices), clients
assert sorted(r[0].split(",")[0] for r in clients[1:]) == ["<b>two", "one"], clients
assert ["matmul", "100"] in [r[:2] for r in kernels], kernels
waited = sum(e["args"].get("waited_us", 0) for e in slices) / 1e3
assert abs(sum(float(r[3]) for r in clients[1:]) - waited) < 0.1, (clients, waited)
assert len(waits) > 1 and all(0 < float(r[2]) <= waited + 0.1 for r in waits[1:]), waits
# Other policies: the first row is the trace, the others do the same jobs in a like time, and no
# faster than without any waiting.
head, traced, *rows = policies
figures = {r[0]: [float(x) for x in r[1:]] for r in policies[1:]}
assert len(head) == 6 and traced[0] == "as it was", policies
assert {"fifo", "wattshare", "sbeet-mg"} <= figures.keys() and "consolidate" not in figures, policies
matmul = [e for e in slices if e["name"].startswith("matmul")]
busy = {c: sum(e["dur"] for e in matmul if e["args"]["client"] == c) / 1e3 for c in {e["args"]["client"] for e in matmul}}
first = min(e["ts"] - e["args"].get("waited_us", 0) for e in matmul)
assert abs(figures["as it was"][0] - (max(e["ts"] + e["dur"] for e in matmul) - first) / 1e3) < 0.01, policies
idle_w = [e["args"]["idle_w"] for e in events if e["ph"] == "M" and e["name"] == "gpu"]
energy = sum(e["args"]["energy_uj"] for e in matmul) / 1e6 + sum(idle_w) * figures["as it was"][0] / 1e3
assert abs(figures["as it was"][4] - energy) < 1e-3, (policies, energy)
for name, (end, wait, longest, response, joules) in figures.items():
    assert max(busy.values()) * 0.99 < end < 3 * figures["as it was"][0] and 0 <= wait <= longest and response > wait, (name, policies)
    assert 0.5 < joules / energy < 2, (name, policies)
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
stop_daemon

# Under a policy: each kernel is of a job whose start was decided, with a reason, and waits from
# before that decision on.
POLICY=fifo start_daemon --gpus t400
record "$tmp/fifo.json"
python3 - "$tmp/fifo.json" <<'EOF' || fail "the policy's decisions in the trace"
import json, sys
events = json.load(open(sys.argv[1]))["traceEvents"]
marks = [e for e in events if e["ph"] == "i" and e["pid"] == 999]
assert [e["args"]["name"] for e in events if e["ph"] == "M" and e["pid"] == 999 and e["name"] == "process_name"] == ["policy"]
starts = {e["args"]["job"]: e for e in marks if e["name"].startswith("start job ")}
kernels = [e for e in events if e["ph"] == "X" and e["pid"] < 999 and e["name"].startswith("matmul")]
assert len(kernels) == 100 and len(starts) > 1, (len(kernels), len(starts))
for job in {e["args"]["job"] for e in kernels}:
    first = min((e for e in kernels if e["args"]["job"] == job), key=lambda e: e["ts"])
    decided = starts[job]
    assert decided["args"]["why"] and "{" not in decided["args"]["why"], decided
    ready = first["ts"] - first["args"].get("waited_us", 0)
    assert ready <= decided["ts"] + 0.001 <= first["ts"] + 0.002, (ready, decided, first)
EOF
ok "the policy's decisions in the trace"
