# doc: manual pages (scdoc) and the architecture page
dist_doc_DATA += doc/analysis.md doc/rtsim.md doc/figures.md doc/policies.md doc/service.md doc/works.md doc/demo.svg
# Not installed: the file of this name in the documentation folder is the README of the whole.
EXTRA_DIST += doc/README.md tools/doc_paths.py
dist_doc_DATA += README.md doc/architecture.md doc/gate.md doc/gpu.md doc/coverage.md doc/edl.md doc/live.md doc/models.md doc/passes.md doc/placement.md doc/sbeet.md doc/templates.md doc/tutorial-sharing.md
man_MANS += man/wattshare-analyze.1 man/wattshare-gen.1
EXTRA_DIST += man/wattshare-analyze.1.scd man/wattshare-gen.1.scd
man/wattshare-analyze.1: man/wattshare-analyze.1.scd
man/wattshare-gen.1: man/wattshare-gen.1.scd
man_MANS += man/wattshare.1 man/wattshare-cluster.1 man/wattshare-experiment.1 man/wattshare-explain.1 man/wattshare-policy.1 man/wattshare-profiles.1 man/wattshare-sim.1 man/wattshared.8 man/wattshared.conf.5
CLEANFILES += $(man_MANS)
EXTRA_DIST += man/wattshare.1.scd man/wattshare-cluster.1.scd man/wattshare-experiment.1.scd man/wattshare-explain.1.scd man/wattshare-policy.1.scd man/wattshare-profiles.1.scd man/wattshare-sim.1.scd man/wattshared.8.scd man/wattshared.conf.5.scd man/README.md
man/wattshare.1: man/wattshare.1.scd
man/wattshare-cluster.1: man/wattshare-cluster.1.scd
man/wattshare-experiment.1: man/wattshare-experiment.1.scd
man/wattshare-explain.1: man/wattshare-explain.1.scd
man/wattshare-policy.1: man/wattshare-policy.1.scd
man/wattshare-profiles.1: man/wattshare-profiles.1.scd
man/wattshare-sim.1: man/wattshare-sim.1.scd
man/wattshared.8: man/wattshared.8.scd
man/wattshared.conf.5: man/wattshared.conf.5.scd
man_MANS += man/wattshare-profile.1
EXTRA_DIST += man/wattshare-profile.1.scd
man/wattshare-profile.1: man/wattshare-profile.1.scd
# Its list of keys is made from the daemon's table of keys.
man/wattshared.conf.5: backend/config_doc
man/wattshared.conf.5: SCD_FILTER = backend/config_doc man
SCD_FILTER = cat
$(man_MANS):
	$(AM_V_GEN)$(MKDIR_P) man && $(SCD_FILTER) < $(top_srcdir)/$@.scd > $@.full && $(SCDOC) < $@.full > $@.new && rm $@.full && mv $@.new $@

man_MANS += man/wattshare-top.1 man/wattshare-trace.1 man/wattshare-keygen.1 man/wattshare-clocks.8
EXTRA_DIST += man/wattshare-top.1.scd man/wattshare-trace.1.scd man/wattshare-keygen.1.scd man/wattshare-clocks.8.scd
man/wattshare-top.1: man/wattshare-top.1.scd
man/wattshare-trace.1: man/wattshare-trace.1.scd
man/wattshare-keygen.1: man/wattshare-keygen.1.scd
man/wattshare-clocks.8: man/wattshare-clocks.8.scd
# Verbs that stand in another's page.
MAN_LINKS = man/wattshare-run.1 man/wattshare-status.1 man/wattshare-coverage.1 man/wattshare-fit.1 man/wattshare-optimum.1
man1_MANS = $(MAN_LINKS)
CLEANFILES += $(MAN_LINKS)
man/wattshare-run.1 man/wattshare-status.1 man/wattshare-coverage.1: $(top_srcdir)/doc/local.mk
	$(AM_V_GEN)$(MKDIR_P) man && echo .so man1/wattshare.1 > $@
man/wattshare-fit.1 man/wattshare-optimum.1: $(top_srcdir)/doc/local.mk
	$(AM_V_GEN)$(MKDIR_P) man && echo .so man1/wattshare-cluster.1 > $@
