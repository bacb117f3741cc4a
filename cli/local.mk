# cli: the wattshare command
bin_PROGRAMS += cli/wattshare
noinst_LIBRARIES += cli/libcoverage.a
cli_libcoverage_a_SOURCES = cli/coverage/ledger.h cli/coverage/ledger.c cli/coverage/ledger.def \
	cli/coverage/coverage.h cli/coverage/report.c cli/coverage/elf.c cli/coverage/libs.c \
	cli/coverage/code.c cli/coverage/rewrites.c cli/coverage/ptxas.c
cli_libcoverage_a_CPPFLAGS = $(AM_CPPFLAGS) $(JSON_C_CFLAGS)
COVERAGE_LIBS = cli/libcoverage.a cli/libtools.a device/libdevice.a ptx/libptx.a base/libbase.a \
	$(CONFUSE_LIBS) $(LZ4_LIBS) $(ZSTD_LIBS) $(LIBMD_LIBS) $(JSON_C_LIBS) -lpthread -lm
# What verbs share and tests use: options and tables.
noinst_LIBRARIES += cli/libtools.a
cli_libtools_a_SOURCES = cli/common/error.c cli/common/nearest.h cli/common/nearest.c \
	cli/common/options.h cli/common/options.c cli/common/options_text.c cli/common/table.h \
	cli/common/table.c
cli_libtools_a_CPPFLAGS = $(AM_CPPFLAGS) $(JSON_C_CFLAGS) $(PROTOBUF_C_CFLAGS) $(ZMQ_CFLAGS)

cli_wattshare_SOURCES = cli/main.c cli/cli.h cli/verbs.def cli/common/daemon.c \
	cli/common/demangle.h cli/common/demangle.c cli/common/elf_kind.h cli/common/elf_kind.c \
	cli/common/link.h cli/common/link.c cli/common/message.h cli/common/message.c \
	cli/common/private_daemon.h cli/common/private_daemon.c cli/common/program.h \
	cli/common/program.c cli/common/text.h cli/common/text.c cli/common/words.h \
	cli/common/words.c cli/doctor/doctor.h cli/doctor/finding.c cli/doctor/checks.c \
	cli/doctor/gpu.c cli/report/html.c cli/report/markup.c cli/report/read.c \
	cli/report/replay.h cli/report/replay.c cli/report/report.h cli/report/timeline.c cli/verbs/check.c cli/verbs/coverage.c \
	cli/verbs/doctor.c cli/verbs/explain.c cli/verbs/keygen.c cli/verbs/policy.c \
	cli/verbs/profile.c cli/verbs/profiles.h cli/verbs/profiles.c cli/verbs/report.c \
	cli/verbs/run.c cli/verbs/smi.h cli/verbs/smi.c cli/verbs/smi_figures.c \
	cli/verbs/smi_query.c cli/verbs/status.h cli/verbs/status.c cli/verbs/status_json.c \
	cli/verbs/status_text.c cli/verbs/step.c cli/verbs/top.c cli/verbs/top_history.h \
	cli/verbs/top_history.c cli/verbs/trace.c
CLI_CPPFLAGS = $(AM_CPPFLAGS) $(NCURSES_CFLAGS) $(ZMQ_CFLAGS) $(PROTOBUF_C_CFLAGS) $(JSON_C_CFLAGS) \
	-DSBINDIR='"$(sbindir)"' -DWSLIBDIR='"$(wslibdir)"' -DBINDIR='"$(bindir)"' -DSYSCONFDIR='"$(sysconfdir)"'
cli_wattshare_CPPFLAGS = $(CLI_CPPFLAGS)
cli_wattshare_LDADD = papers/libverbs.a cli/libtools.a $(PAPERS_LIBS) $(COVERAGE_LIBS) \
	protocol/libprotocol.a base/libbase.a $(ZMQ_LIBS) $(PROTOBUF_C_LIBS) $(JSON_C_LIBS) \
	$(NCURSES_LIBS)
EXTRA_DIST += cli/README.md cli/common/README.md cli/verbs/README.md cli/coverage/README.md \
	cli/doctor/README.md cli/report/README.md LICENSE NEWS

# doc/coverage.md, from the ledger; tests/process/coverage.sh sees that it is current.
noinst_PROGRAMS += cli/ledger_doc
cli_ledger_doc_SOURCES = cli/coverage/ledger_doc.c
cli_ledger_doc_LDADD = $(COVERAGE_LIBS)
LEDGER_FORMS = census ops forms
.PHONY: doc-coverage
doc-coverage: cli/ledger_doc
	cli/ledger_doc $(LEDGER_FORMS:%=$(top_srcdir)/tests/ptx/%.ptx) > $(top_srcdir)/doc/coverage.md

# What bash completes, from the tables of the verbs.
bashcompletiondir = $(datadir)/bash-completion/completions
nodist_bashcompletion_DATA = tools/completion/wattshare
CLEANFILES += tools/completion/wattshare tools/completion/table
EXTRA_DIST += tools/completion/README.md tools/completion/wattshare.sh tools/completion/wattshare.fish.sh \
	tools/completion/wattshare.zsh.sh
tools/completion/wattshare: cli/wattshare $(top_srcdir)/tools/completion/wattshare.sh
	$(AM_V_GEN)$(MKDIR_P) tools/completion && cli/wattshare --print-completion > tools/completion/table && \
	  sh $(top_srcdir)/tools/completion/wattshare.sh tools/completion/table > $@.tmp && mv $@.tmp $@

fishcompletiondir = $(datadir)/fish/vendor_completions.d
nodist_fishcompletion_DATA = tools/completion/wattshare.fish
zshcompletiondir = $(datadir)/zsh/vendor-completions
nodist_zshcompletion_DATA = tools/completion/_wattshare
CLEANFILES += tools/completion/wattshare.fish tools/completion/_wattshare
tools/completion/wattshare.fish: tools/completion/wattshare $(top_srcdir)/tools/completion/wattshare.fish.sh
	$(AM_V_GEN)sh $(top_srcdir)/tools/completion/wattshare.fish.sh tools/completion/table > $@.tmp && mv $@.tmp $@
tools/completion/_wattshare: tools/completion/wattshare $(top_srcdir)/tools/completion/wattshare.zsh.sh
	$(AM_V_GEN)sh $(top_srcdir)/tools/completion/wattshare.zsh.sh tools/completion/table > $@.tmp && mv $@.tmp $@

# The Debian package: dpkg-buildpackage -b, in the source's top folder.
EXTRA_DIST += debian/changelog debian/control debian/copyright debian/rules debian/source/format \
	debian/wattshare.postrm debian/wattshare.sysusers debian/wattshare.tmpfiles \
	debian/wattshare-slurm.files debian/wattshare-slurm.links
