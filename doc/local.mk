# doc: manual pages (scdoc) and the architecture page
dist_doc_DATA += doc/analysis.md doc/rtsim.md doc/figures.md doc/policies.md doc/service.md \
	doc/works.md doc/programs.md doc/blas.md doc/demo.svg
# Not installed: the file of this name in the documentation folder is the README of the whole.
EXTRA_DIST += doc/README.md tools/doc_paths.py
dist_doc_DATA += README.md doc/architecture.md doc/check.md doc/containers.md doc/gate.md \
	doc/gpu.md doc/jit.md doc/coverage.md doc/edl.md doc/live.md doc/models.md doc/passes.md \
	doc/placement.md doc/policy-wattshare.md doc/sbeet.md doc/security.md doc/slurm.md \
	doc/templates.md doc/tutorial-fit.md doc/tutorial-sharing.md
# Manual pages of verbs: synopsis, options and examples come from the program's own tables
# (man/page.sh), so a cross-build needs to run the program that it makes.
VERB_PAGES = man/wattshare.1 man/wattshare-analyze.1 man/wattshare-cluster.1 \
	man/wattshare-doctor.1 man/wattshare-experiment.1 man/wattshare-explain.1 \
	man/wattshare-gen.1 man/wattshare-keygen.1 man/wattshare-policy.1 man/wattshare-profile.1 \
	man/wattshare-profiles.1 man/wattshare-report.1 man/wattshare-sim.1 man/wattshare-smi.1 \
	man/wattshare-step.1 man/wattshare-top.1 man/wattshare-trace.1
man_MANS += $(VERB_PAGES)
EXTRA_DIST += $(VERB_PAGES:=.scd) man/page.sh man/README.md
$(VERB_PAGES): cli/wattshare $(top_srcdir)/man/page.sh
$(VERB_PAGES): SCD_FILTER = sh $(top_srcdir)/man/page.sh cli/wattshare
man/wattshare.1: man/wattshare.1.scd
man/wattshare-analyze.1: man/wattshare-analyze.1.scd
man/wattshare-cluster.1: man/wattshare-cluster.1.scd
man/wattshare-doctor.1: man/wattshare-doctor.1.scd
man/wattshare-experiment.1: man/wattshare-experiment.1.scd
man/wattshare-explain.1: man/wattshare-explain.1.scd
man/wattshare-gen.1: man/wattshare-gen.1.scd
man/wattshare-keygen.1: man/wattshare-keygen.1.scd
man/wattshare-policy.1: man/wattshare-policy.1.scd
man/wattshare-profile.1: man/wattshare-profile.1.scd
man/wattshare-profiles.1: man/wattshare-profiles.1.scd
man/wattshare-sim.1: man/wattshare-sim.1.scd
man/wattshare-report.1: man/wattshare-report.1.scd
man/wattshare-smi.1: man/wattshare-smi.1.scd
man/wattshare-step.1: man/wattshare-step.1.scd
man/wattshare-top.1: man/wattshare-top.1.scd
man/wattshare-trace.1: man/wattshare-trace.1.scd

# The other pages.
OTHER_PAGES = man/wattshare-slurm.8 man/wattshare-planner.8 man/wattshared.8 man/wattshared.conf.5 \
	man/wattshare-clocks.8 man/wattshare-suspend.8
man_MANS += $(OTHER_PAGES)
EXTRA_DIST += $(OTHER_PAGES:=.scd)
man/wattshare-slurm.8: man/wattshare-slurm.8.scd
man/wattshare-planner.8: man/wattshare-planner.8.scd
man/wattshare-suspend.8: man/wattshare-suspend.8.scd
man/wattshared.8: man/wattshared.8.scd
man/wattshared.conf.5: man/wattshared.conf.5.scd
man/wattshare-clocks.8: man/wattshare-clocks.8.scd
# Its list of keys is made from the daemon's table of keys.
man/wattshared.conf.5: backend/config_doc
man/wattshared.conf.5: SCD_FILTER = backend/config_doc man
SCD_FILTER = cat
$(man_MANS):
	$(AM_V_GEN)$(MKDIR_P) man && $(SCD_FILTER) < $(top_srcdir)/$@.scd > $@.full && $(SCDOC) < $@.full > $@.new && rm $@.full && mv $@.new $@
CLEANFILES += $(man_MANS)

# Verbs that are described in another's page.
MAN_LINKS = man/wattshare-run.1 man/wattshare-status.1 man/wattshare-check.1 \
	man/wattshare-coverage.1 man/wattshare-fit.1 man/wattshare-optimum.1
man1_MANS = $(MAN_LINKS)
CLEANFILES += $(MAN_LINKS)
man/wattshare-run.1 man/wattshare-status.1 man/wattshare-check.1 man/wattshare-coverage.1: $(top_srcdir)/doc/local.mk
	$(AM_V_GEN)$(MKDIR_P) man && echo .so man1/wattshare.1 > $@
man/wattshare-fit.1 man/wattshare-optimum.1: $(top_srcdir)/doc/local.mk
	$(AM_V_GEN)$(MKDIR_P) man && echo .so man1/wattshare-cluster.1 > $@
