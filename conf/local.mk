# conf: what ships under $(sysconfdir)/wattshare
gpuconfdir = $(sysconfdir)/wattshare/gpu.d
dist_gpuconf_DATA = conf/gpu.d/rtx3070.conf conf/gpu.d/t400.conf conf/gpu.d/tesla-c1060.conf \
	conf/gpu.d/h200.conf conf/gpu.d/gtx970.conf conf/gpu.d/xavier.conf \
	conf/gpu.d/gtx1080ti.conf conf/gpu.d/gtx980.conf conf/gpu.d/gv100.conf \
	conf/gpu.d/p100.conf conf/gpu.d/rtx2070s.conf conf/gpu.d/rtx3080ti.conf \
	conf/gpu.d/rtx8000.conf conf/gpu.d/v100.conf conf/gpu.d/host.conf
profilesdir = $(sysconfdir)/wattshare/profiles
dist_profiles_DATA = conf/profiles/rtx3070.csv conf/profiles/t400.csv
# The READMEs are not installed.
EXTRA_DIST += conf/README.md conf/examples/README.md conf/gpu.d/README.md conf/profiles/README.md \
	conf/systemd/README.md
grafanadir = $(datadir)/wattshare/grafana
dist_grafana_DATA = conf/grafana/wattshare.json
EXTRA_DIST += conf/grafana/README.md
cdidir = $(sysconfdir)/cdi
nodist_cdi_DATA = conf/containers/wattshare.json
containersdir = $(docdir)/containers
dist_containers_DATA = conf/containers/Containerfile conf/containers/github-actions.yml \
	conf/containers/gitlab-ci.yml
EXTRA_DIST += conf/containers/README.md conf/containers/wattshare.cdi.json.in
CLEANFILES += conf/containers/wattshare.json
conf/containers/wattshare.json: $(top_srcdir)/conf/containers/wattshare.cdi.json.in
	$(AM_V_GEN)$(MKDIR_P) conf/containers && sed -e 's|[@]wslibdir[@]|$(wslibdir)|g' $< > $@
wsconfdir = $(sysconfdir)/wattshare
nodist_wsconf_DATA = conf/wattshared.conf
CLEANFILES += conf/wattshared.conf
conf/wattshared.conf: backend/config_doc
	$(AM_V_GEN)$(MKDIR_P) conf && backend/config_doc example > $@.new && mv $@.new $@
# What systemd reads. Where the prefix isn't /usr, it doesn't look there: link the files into /etc.
systemdunitdir = $(prefix)/lib/systemd/system
sysusersdir = $(prefix)/lib/sysusers.d
tmpfilesdir = $(prefix)/lib/tmpfiles.d
examplesdir = $(docdir)/examples
SYSTEMD_IN = conf/systemd/wattshared.service.in conf/systemd/wattshare-clocks.service.in \
	conf/systemd/wattshare@.service.in conf/systemd/preload.conf.in \
	conf/systemd/wattshare-planner.service.in
SYSTEMD_MADE = conf/systemd/wattshared.service conf/systemd/wattshare-clocks.service \
	conf/systemd/wattshare@.service conf/systemd/preload.conf \
	conf/systemd/wattshare-planner.service
nodist_systemdunit_DATA = conf/systemd/wattshared.service conf/systemd/wattshare-clocks.service
if HAVE_SPANK
nodist_systemdunit_DATA += conf/systemd/wattshare-planner.service
endif
dist_systemdunit_DATA = conf/systemd/wattshared.socket conf/systemd/wattshare-clocks.socket
nodist_examples_DATA = conf/systemd/wattshare@.service conf/systemd/preload.conf
EXTRA_DIST += $(SYSTEMD_IN) conf/systemd/wattshare.sysusers conf/systemd/wattshare.tmpfiles
CLEANFILES += $(SYSTEMD_MADE)
$(SYSTEMD_MADE): conf/systemd/%: $(top_srcdir)/conf/systemd/%.in
	$(AM_V_GEN)$(MKDIR_P) conf/systemd && sed -e 's|[@]sbindir[@]|$(sbindir)|' -e 's|[@]bindir[@]|$(bindir)|' -e 's|[@]wslibdir[@]|$(wslibdir)|' \
	  -e 's|[@]sysconfdir[@]|$(sysconfdir)|' $< > $@
install-data-local: install-systemd-names
uninstall-local: uninstall-systemd-names
.PHONY: install-systemd-names uninstall-systemd-names
install-systemd-names:
	$(MKDIR_P) $(DESTDIR)$(sysusersdir) $(DESTDIR)$(tmpfilesdir)
	$(INSTALL_DATA) $(top_srcdir)/conf/systemd/wattshare.sysusers $(DESTDIR)$(sysusersdir)/wattshare.conf
	$(INSTALL_DATA) $(top_srcdir)/conf/systemd/wattshare.tmpfiles $(DESTDIR)$(tmpfilesdir)/wattshare.conf
uninstall-systemd-names:
	rm -f $(DESTDIR)$(sysusersdir)/wattshare.conf $(DESTDIR)$(tmpfilesdir)/wattshare.conf
# A daemon that runs in the build tree finds the catalog beside it.
noinst_DATA = conf/.catalog
if !HAVE_SPANK
noinst_DATA += conf/systemd/wattshare-planner.service # which tests look at
endif
conf/.catalog:
	@$(MKDIR_P) conf && { test -e conf/gpu.d || ln -s $(abs_top_srcdir)/conf/gpu.d conf/gpu.d; } && touch $@
CLEANFILES += conf/.catalog
# One for each policy; tests/process/examples.sh runs them all.
confexamplesdir = $(docdir)/examples
dist_confexamples_DATA = conf/examples/bcf.conf \
	conf/examples/bfd-sbeet.conf \
	conf/examples/bin-packing.conf \
	conf/examples/consolidate.conf \
	conf/examples/edf-bf.conf \
	conf/examples/edf-wf.conf \
	conf/examples/edl.conf \
	conf/examples/ffd-sbeet.conf \
	conf/examples/fifo.conf \
	conf/examples/gcaps.conf \
	conf/examples/gcaps-alg1.conf \
	conf/examples/gcaps-driver.conf \
	conf/examples/lcf.conf \
	conf/examples/load-dist.conf \
	conf/examples/lpt-ff.conf \
	conf/examples/mg-sbeet.conf \
	conf/examples/none.conf \
	conf/examples/rr.conf \
	conf/examples/sbeet.conf \
	conf/examples/sbeet-mg.conf \
	conf/examples/sbeet-mg-offline.conf \
	conf/examples/stgm.conf \
	conf/examples/wattshare.conf \
	conf/examples/wattshare-servers.conf \
	conf/examples/wfd-sbeet.conf
