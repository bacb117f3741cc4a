# conf: what ships under $(sysconfdir)/wattshare
gpuconfdir = $(sysconfdir)/wattshare/gpu.d
dist_gpuconf_DATA = conf/gpu.d/rtx3070.conf conf/gpu.d/t400.conf conf/gpu.d/tesla-c1060.conf conf/gpu.d/h200.conf \
    conf/gpu.d/gtx970.conf conf/gpu.d/xavier.conf conf/gpu.d/gtx1080ti.conf
profilesdir = $(sysconfdir)/wattshare/profiles
dist_profiles_DATA = conf/profiles/rtx3070.csv conf/profiles/t400.csv
EXTRA_DIST += conf/profiles/README.md
wsconfdir = $(sysconfdir)/wattshare
dist_wsconf_DATA = conf/wattshared.conf
systemdunitdir = $(prefix)/lib/systemd/system
nodist_systemdunit_DATA = conf/wattshared.service
EXTRA_DIST += conf/wattshared.service.in conf/README.md
CLEANFILES += conf/wattshared.service
conf/wattshared.service: $(top_srcdir)/conf/wattshared.service.in
	$(AM_V_GEN)$(MKDIR_P) conf && sed 's|@sbindir@|$(sbindir)|' $(top_srcdir)/conf/wattshared.service.in > $@
# A daemon that runs in the build tree finds the catalog beside it.
noinst_DATA = conf/.catalog
conf/.catalog:
	@$(MKDIR_P) conf && { test -e conf/gpu.d || ln -s $(abs_top_srcdir)/conf/gpu.d conf/gpu.d; } && touch $@
CLEANFILES += conf/.catalog
