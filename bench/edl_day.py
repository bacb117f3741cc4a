#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A day of EDL online, as a plain slot loop in Python: what bench_edl is measured against.

Usage: edl_day.py TASKS.jsonl L THETA. Prints seconds of processor time, run energy and idle energy. The same algorithms as policy/edl.c (Mei et al.,
Algorithms 1-5), written the straightforward way: each slot looks at every pair that is on, each placement scans for the pair that is
free first, each setting is found by a grid and a golden section.
"""
import json
import math
import sys
import time

P_IDLE, DELTA, RHO = 37, 90, 2
V_MAX, FC_MIN, FM_MIN, FM_MAX = 1.2, 0.5, 0.5, 1.2
FC_MAX = 0.5 + math.sqrt((V_MAX - 0.5) / 2)


def point(k, fc, limit):
    v = 0.5 + 2 * (fc - 0.5) ** 2
    a, b, m = k["P0"] + k["c"] * v * v * fc, k["t0"] + k["D"] * k["delta"] / fc, k["D"] * (1 - k["delta"])
    fm = math.sqrt(a * m / (k["gamma"] * b)) if k["gamma"] > 0 else FM_MAX
    fm = min(max(fm, FM_MIN), FM_MAX)
    if limit < math.inf and m > 0:
        if limit <= b:
            return math.inf, 0, 0
        need = m / (limit - b)
        if need > FM_MAX * (1 + 1e-12):
            return math.inf, 0, 0
        fm = min(max(fm, need), FM_MAX)
    t, p = b + m / fm, a + k["gamma"] * fm
    return t * p, t, p


def optimum(k, limit):
    lo, hi, n = FC_MIN, FC_MAX, 200
    if limit < math.inf and k["delta"] > 0:
        lo = min(max(lo, k["D"] * k["delta"] / (limit - k["t0"] - k["D"] * (1 - k["delta"]) / FM_MAX)), hi)
    xs = [lo + (hi - lo) * i / n for i in range(n + 1)]
    best = min(range(n + 1), key=lambda i: point(k, xs[i], limit)[0])
    a, b, g = xs[max(best - 1, 0)], xs[min(best + 1, n)], (math.sqrt(5) - 1) / 2
    while b - a > 1e-10:
        x, y = b - g * (b - a), a + g * (b - a)
        if point(k, x, limit)[0] < point(k, y, limit)[0]:
            b = y
        else:
            a = x
    return min(point(k, x, limit) for x in (lo, (a + b) / 2, hi))


def t_min(k):
    return k["t0"] + k["D"] * (k["delta"] / FC_MAX + (1 - k["delta"]) / FM_MAX)


class Server:
    def __init__(self, n):
        self.mu = [0.0] * n
        self.on = False
        self.since = 0
        self.busy = 0.0


class Day:
    def __init__(self, l, theta):
        self.l, self.theta = l, theta
        self.servers = []
        self.e_run = self.e_idle = 0.0
        self.turned_on = 0

    def configure(self, k, now):
        e, t, p = optimum(k, math.inf)
        prior = t > k["d"] - now
        if prior:
            e, t, p = optimum(k, k["d"] - now)
        return t, p, prior

    def run(self, k, server, pair, start, t, p):
        server.mu[pair] = start + t
        server.busy += t
        self.e_run += t * p

    def turn_on(self, now):
        for s in self.servers:
            if not s.on:
                break
        else:
            s = Server(self.l)
            self.servers.append(s)
        s.on, s.since, s.busy, s.mu = True, now, 0.0, [float(now)] * self.l
        self.turned_on += self.l
        return s

    def choose(self, k, now, mus, t, p):
        """Where k goes among mus: (index or None, length, power)."""
        i = min(range(len(mus)), key=lambda j: mus[j]) if mus else None
        if i is None:
            return None, t, p
        room = k["d"] - max(now, mus[i])
        if room + 1e-9 * k["d"] >= t:
            return i, t, p
        if self.theta < 1 and room >= max(self.theta * t, t_min(k)):
            _, t, p = optimum(k, room)
            return i, room, p
        return None, t, p

    def first(self, tasks):
        pairs, placed = [], []
        jobs = [(k, *self.configure(k, 0)) for k in tasks]
        for k, t, p, _ in [j for j in jobs if j[3]]:
            pairs.append(t)
            placed.append((len(pairs) - 1, t, p))
        for k, t, p, _ in sorted((j for j in jobs if not j[3]), key=lambda j: (j[0]["d"], j[0]["id"])):
            i, t, p = self.choose(k, 0, pairs, t, p)
            if i is None:
                pairs.append(0.0)
                i = len(pairs) - 1
            pairs[i] += t
            placed.append((i, t, p))
        order = sorted(range(len(pairs)), key=lambda i: -pairs[i])
        place = {}
        for n, i in enumerate(order):
            if n % self.l == 0:
                server = self.turn_on(0)
            place[i] = server
            server.mu[n % self.l] = pairs[i]
        for i, t, p in placed:
            place[i].busy += t
            self.e_run += t * p

    def slot(self, now, arrivals):
        for s in self.servers:
            if s.on and all(math.ceil(mu) + RHO <= now for mu in s.mu):
                s.on = False
                self.e_idle += P_IDLE * (self.l * (now - s.since) - s.busy)
        for k in sorted(arrivals, key=lambda k: (k["d"], k["id"])):
            t, p, _ = self.configure(k, now)
            where = [(s, i) for s in self.servers if s.on for i in range(self.l)]
            i, t, p = self.choose(k, now, [s.mu[j] for s, j in where], t, p)
            server, pair = where[i] if i is not None else (self.turn_on(now), 0)
            self.run(k, server, pair, max(now, server.mu[pair]), t, p)


def main():
    tasks = [json.loads(line) for line in open(sys.argv[1])]
    begin = time.process_time()
    day = Day(int(sys.argv[2]), float(sys.argv[3]))
    by_slot = {}
    for k in tasks:
        by_slot.setdefault(int(k["a"]), []).append(k)
    day.first(by_slot.get(0, []))
    now = 1
    while now <= max(by_slot) or any(s.on for s in day.servers):
        day.slot(now, by_slot.get(now, []))
        now += 1
    print(time.process_time() - begin, day.e_run, day.e_idle, day.turned_on)


main()
