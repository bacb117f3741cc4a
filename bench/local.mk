# Benchmarks: `make bench` builds and runs each in turn. A program takes no argument to print a
# table for people, prints ratios against a baseline measured in the same run, and exits 0 unless it
# could not measure. A room adds its program with
#   BENCHES += bench/bench_x ; bench_bench_x_SOURCES = … ; bench_bench_x_LDADD = …
BENCHES =
EXTRA_DIST += bench/gate.sh bench/passes.sh bench/learning.sh
.PHONY: bench-learning
bench-learning: all
	srcdir=$(srcdir) $(srcdir)/bench/learning.sh
.PHONY: bench-gate
bench-gate: all tests/mock/libcuda.so.1 tests/mock/libnvidia-ml.so.1 tests/cuda/drv_gate
	$(srcdir)/bench/gate.sh
.PHONY: bench-passes
bench-passes: all
	srcdir=$(srcdir) $(srcdir)/bench/passes.sh
EXTRA_PROGRAMS = $(BENCHES)
CLEANFILES += $(BENCHES)
EXTRA_DIST += bench/README.md
include bench/rooms.mk
# Each prints to a file too, from which bench/readme.sh makes the table of README.md.
CLEANFILES += bench/*.out
EXTRA_DIST += bench/readme.sh
.PHONY: bench bench-readme
bench: all $(BENCHES)
	@lost=; for b in $(BENCHES); do echo "== $$b"; $(abs_builddir)/$$b >$$b.out || lost="$$lost $$b"; cat $$b.out; done; \
	$(MAKE) -s bench-readme || lost="$$lost bench-readme"; [ -z "$$lost" ] || { echo "could not measure:$$lost" >&2; exit 1; }
bench-readme: all
	@srcdir=$(srcdir) $(srcdir)/bench/readme.sh
EXTRA_DIST += bench/results/2026-11-21-xeon-2core.txt bench/results/2026-11-21-passes.txt \
	bench/results/2026-11-21-gate.txt bench/results/2026-11-21-live.txt \
	bench/results/2026-11-21-live-merged.txt bench/results/slurm-share.csv \
	bench/results/slurm-share.svg bench/results/slurm-edl.csv bench/results/slurm-edl.svg
include bench/live.mk
