# slurm: wattshare under Slurm
if HAVE_SPANK
# A shared object that Slurm opens; automake knows it as a program.
slurmlib_PROGRAMS += slurm/spank/wattshare.so
slurm_spank_wattshare_so_SOURCES = slurm/spank/plugin.c slurm/spank/comment.c \
	slurm/spank/comment.h slurm/spank/gres.c slurm/spank/gres.h slurm/spank/helper.c \
	slurm/spank/helper.h slurm/spank/wishes.c slurm/spank/wishes.h slurm/planner/note.c \
	slurm/planner/note.h
slurm_spank_wattshare_so_CPPFLAGS = $(AM_CPPFLAGS) -DWS_SPANK_WATTSHARE='"$(bindir)/wattshare"'
slurm_spank_wattshare_so_CFLAGS = $(WS_CFLAGS) -fvisibility=default
slurm_spank_wattshare_so_LDFLAGS = -shared -Wl,-Bsymbolic
endif
# What decides is built everywhere, for its test and its benchmark; the service
# belongs to a machine with Slurm.
noinst_LIBRARIES += slurm/planner/libplan.a
slurm_planner_libplan_a_SOURCES = slurm/planner/plan.c slurm/planner/plan.h slurm/planner/note.c \
	slurm/planner/note.h slurm/hosts.c slurm/hosts.h
PLAN_LIBS = slurm/planner/libplan.a policy/libpolicy.a models/libmodels.a base/libbase.a -lm
if HAVE_SPANK
sbin_PROGRAMS += slurm/planner/wattshare-planner
slurm_planner_wattshare_planner_SOURCES = slurm/planner/main.c slurm/planner/answer.c \
	slurm/planner/answer.h slurm/planner/settings.c slurm/planner/settings.h \
	slurm/planner/jobs.c slurm/planner/jobs.h slurm/planner/ctld.c slurm/planner/ctld.h
slurm_planner_wattshare_planner_CPPFLAGS = $(AM_CPPFLAGS) $(CONFUSE_CFLAGS) -DSYSCONFDIR='"$(sysconfdir)"' \
	-DSBINDIR='"$(sbindir)"'
slurm_planner_wattshare_planner_LDADD = $(PLAN_LIBS) $(CONFUSE_LIBS) -lpthread
endif
# slurm.conf can name a program, but no arguments; so there is one for each direction.
if HAVE_SPANK
sbin_PROGRAMS += slurm/power/wattshare-resume slurm/power/wattshare-suspend
slurm_power_wattshare_resume_SOURCES = slurm/power/power.c
slurm_power_wattshare_resume_CPPFLAGS = $(AM_CPPFLAGS) -DWS_POWER='"on"' \
	-DSYSCONFDIR='"$(sysconfdir)"'
slurm_power_wattshare_resume_LDADD = slurm/planner/libplan.a base/libbase.a
slurm_power_wattshare_suspend_SOURCES = slurm/power/power.c
slurm_power_wattshare_suspend_CPPFLAGS = $(AM_CPPFLAGS) -DWS_POWER='"off"' \
	-DSYSCONFDIR='"$(sysconfdir)"'
slurm_power_wattshare_suspend_LDADD = slurm/planner/libplan.a base/libbase.a
endif
dist_slurmlib_SCRIPTS = slurm/node/wattshare-node
slurmlib_DATA = slurm/planner/job_submit.lua
EXTRA_DIST += slurm/planner/job_submit.lua slurm/planner/README.md slurm/power/README.md \
	slurm/node/README.md
# Jobs on a private cluster of this machine; skipped where Slurm is not installed.
SLURM_TESTS = tests/slurm/cluster.sh tests/slurm/planner.sh tests/slurm/power.sh \
	tests/slurm/faults.sh tests/slurm/many.sh tests/slurm/node.sh \
	tests/slurm/hostile.sh tests/slurm/ways.sh
dist_check_SCRIPTS += $(SLURM_TESTS)
check_PROGRAMS += tests/slurm/hold
tests_slurm_hold_SOURCES = tests/slurm/hold.c
tests_slurm_hold_LDADD = -ldl
TESTS += $(SLURM_TESTS)
EXTRA_DIST += tests/slurm/lib.sh tests/slurm/README.md slurm/README.md slurm/spank/README.md \
	slurm/cluster/README.md slurm/cluster/cluster.sh slurm/cluster/day.sh \
	slurm/cluster/next.txt slurm/cluster/edl.sh slurm/cluster/share.sh

# What the plugin adds to the start of a job, beside the same job without it.
.PHONY: bench-slurm
bench-slurm: cluster-programs
	@srcdir=$(top_srcdir) sh $(top_srcdir)/bench/slurm.sh
EXTRA_DIST += bench/slurm.sh

# `./quickstart cluster`: what it runs, and no more.
CLUSTER_NEEDS = backend/wattshared cli/wattshare frontend/wattshare-driver/stamp demo/sample \
	slurm/spank/wattshare.so slurm/planner/wattshare-planner \
	$(CUDA_DRIVER_WORKLOADS:%=tests/cuda/drv_%)
.PHONY: cluster cluster-programs
cluster-programs: $(BUILT_SOURCES) config.h
	$(MAKE) $(AM_MAKEFLAGS) $(CLUSTER_NEEDS)
cluster: cluster-programs
	@srcdir=$(top_srcdir) sh $(top_srcdir)/slurm/cluster/day.sh
