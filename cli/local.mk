# cli: the wattshare command
bin_PROGRAMS += cli/wattshare
noinst_LIBRARIES += cli/libcoverage.a
cli_libcoverage_a_SOURCES = cli/ledger.h cli/ledger.c cli/ledger.def cli/coverage.h cli/coverage_report.c cli/coverage_elf.c \
	cli/coverage_libs.c cli/coverage_code.c cli/coverage_rewrites.c cli/coverage_ptxas.c
cli_libcoverage_a_CPPFLAGS = $(AM_CPPFLAGS) $(JSON_C_CFLAGS)
COVERAGE_LIBS = cli/libcoverage.a cli/libtools.a device/libdevice.a ptx/libptx.a base/libbase.a $(CONFUSE_LIBS) $(LZ4_LIBS) $(ZSTD_LIBS) \
	$(JSON_C_LIBS) -lpthread -lm
# What verbs share and tests use: tables, progress, side by side.
noinst_LIBRARIES += cli/libtools.a
cli_libtools_a_SOURCES = cli/error.c cli/table.h cli/table.c cli/progress.h cli/progress.c cli/parallel.h cli/parallel.c
cli_libtools_a_CPPFLAGS = $(AM_CPPFLAGS) $(JSON_C_CFLAGS) $(PROTOBUF_C_CFLAGS) $(ZMQ_CFLAGS)

cli_wattshare_SOURCES = cli/main.c cli/cli.h cli/verbs.def cli/parts.c \
	cli/cluster.c \
	cli/coverage.c \
	cli/elf_kind.c cli/elf_kind.h \
	cli/exp_consolidation.c \
	cli/exp_edl.h cli/exp_edl.c cli/exp_edl_offline.c cli/exp_edl_online.c \
	cli/experiment.h cli/experiment.c cli/experiments.def \
	cli/explain.c \
	cli/fit.c \
	cli/gen.h cli/gen.c cli/generators.def cli/gen_edl.c \
	cli/input.h cli/input.c \
	cli/keygen.c cli/link.h cli/link.c cli/text.h cli/text.c cli/top.c cli/trace.c \
	cli/optimum.c \
	cli/policy.c \
	cli/private.c cli/private.h \
	cli/profile.c cli/profiles.h cli/profiles.c \
	cli/program.h cli/program.c \
	cli/run.c \
	cli/status.c
cli_wattshare_SOURCES += cli/analyze.c cli/gen_rt.c cli/exp_gcaps.c cli/exp_gcaps_fig8.def cli/exp_rtsim.c cli/exp_stgm.c
cli_wattshare_SOURCES += cli/exp_sbeet.c cli/gen_sbeet.c
cli_wattshare_SOURCES += cli/sim.h cli/sim.c cli/sim_gpus.c cli/sim_rt.h cli/sim_rt.c
cli_wattshare_SOURCES += cli/live.h cli/live.c cli/live_set.h cli/live_set.c cli/exp_live_consolidation.c cli/exp_live_edl.c cli/exp_live_rt.c
cli_wattshare_CPPFLAGS = $(AM_CPPFLAGS) $(NCURSES_CFLAGS) $(ZMQ_CFLAGS) $(PROTOBUF_C_CFLAGS) $(JSON_C_CFLAGS) \
	-DSBINDIR='"$(sbindir)"' -DWSLIBDIR='"$(wslibdir)"' -DBINDIR='"$(bindir)"' -DSYSCONFDIR='"$(sysconfdir)"'
cli_wattshare_LDADD = cli/libtools.a $(SIM_LIBS) $(COVERAGE_LIBS) protocol/libprotocol.a base/libbase.a $(ZMQ_LIBS) $(PROTOBUF_C_LIBS) $(JSON_C_LIBS) $(NCURSES_LIBS)
EXTRA_DIST += cli/README.md LICENSE NEWS

# doc/coverage.md, from the ledger; tests/process/coverage.sh sees that it is current.
noinst_PROGRAMS += cli/ledger_doc
cli_ledger_doc_SOURCES = cli/ledger_doc.c
cli_ledger_doc_LDADD = $(COVERAGE_LIBS)
LEDGER_FORMS = census ops forms
.PHONY: doc-coverage
doc-coverage: cli/ledger_doc
	cli/ledger_doc $(LEDGER_FORMS:%=$(top_srcdir)/tests/ptx/%.ptx) > $(top_srcdir)/doc/coverage.md

# What bash completes, from the table of verbs.
bashcompletiondir = $(datadir)/bash-completion/completions
nodist_bashcompletion_DATA = tools/completion/wattshare
CLEANFILES += tools/completion/wattshare
EXTRA_DIST += tools/completion/wattshare.sh
tools/completion/wattshare: $(top_srcdir)/cli/verbs.def $(top_srcdir)/tools/completion/wattshare.sh
	$(AM_V_GEN)$(MKDIR_P) tools/completion && sh $(top_srcdir)/tools/completion/wattshare.sh $(top_srcdir)/cli/verbs.def > $@.tmp && mv $@.tmp $@

# The Debian package: dpkg-buildpackage -b, in the source's top folder.
EXTRA_DIST += debian/changelog debian/control debian/copyright debian/rules debian/source/format debian/wattshare.sysusers debian/wattshare.tmpfiles
