# papers: simulators, generators, analyses and fits. What needs the command (verbs, experiments) is in cli/local.mk.
noinst_LIBRARIES += papers/libpapers.a
papers_libpapers_a_SOURCES = papers/sets/jsonl.h papers/sets/jsonl.c \
	papers/sim/cluster.h papers/sim/cluster.c papers/sets/cluster_tasks.c \
	papers/sets/csv.h papers/sets/csv.c \
	papers/sets/edl_apps.h papers/sets/edl_apps.c papers/sets/edl_apps.def \
	papers/sets/edl_study.h papers/sets/edl_study.c \
	papers/sets/gen_edl.h papers/sets/gen_edl.c \
	papers/sets/random.h papers/sets/random.c
papers_libpapers_a_SOURCES += papers/common/parallel.h papers/common/parallel.c papers/common/progress_bar.h papers/common/progress_bar.c
papers_libpapers_a_SOURCES += papers/sim/machine_trace.h papers/sim/machine_trace.c
papers_libpapers_a_SOURCES += papers/sets/gpus.h papers/sets/gpus.c papers/sim/machine.h papers/sim/machine.c
papers_libpapers_a_SOURCES += papers/sets/gen_sbeet.h papers/sets/gen_sbeet.c papers/sets/sbeet_set.h papers/sets/sbeet_set.c
papers_libpapers_a_SOURCES += papers/sets/axis.h papers/sets/gen_gcaps.h papers/sets/gen_gcaps.c papers/sets/gen_stgm.h papers/sets/gen_stgm.c papers/sets/rt_sets.h papers/sets/rt_sets.c
papers_libpapers_a_SOURCES += papers/sim/rtsim.h papers/sim/rtsim.c papers/sim/rtsim_private.h papers/sim/rtsim_check.c \
	papers/sim/rtsim_cores.c papers/sim/rtsim_gpu.c papers/sim/rtsim_list.c papers/sim/rtsim_policy.c papers/sim/rtsim_steps.c papers/sim/rtsim_hunt.h papers/sim/rtsim_hunt.c papers/sets/rtsim_set.h papers/sets/rtsim_set.c
papers_libpapers_a_SOURCES += papers/analysis/fmlp.c papers/analysis/gcaps.c papers/analysis/gcaps.h papers/analysis/gprio.c \
	papers/analysis/methods.c papers/analysis/mpcp.c papers/analysis/rr.c papers/analysis/rta.c papers/analysis/rta.h \
	papers/analysis/rta_private.h papers/analysis/stgm.c papers/analysis/stgm.h
papers_libpapers_a_SOURCES += papers/fit/fit.h papers/fit/fit.c papers/fit/nnls.h papers/fit/nnls.c
papers_libpapers_a_CPPFLAGS = $(AM_CPPFLAGS) $(JSON_C_CFLAGS)
PAPERS_LIBS = papers/libpapers.a policy/libpolicy.a $(MODELS_LIBS) $(JSON_C_LIBS) -lpthread
EXTRA_DIST += papers/README.md papers/analysis/README.md
