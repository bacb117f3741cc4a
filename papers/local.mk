# papers: simulators, generators, analyses and fits, and the verbs and experiments of the command
# that use them.
noinst_LIBRARIES += papers/libpapers.a papers/libverbs.a
papers_libpapers_a_SOURCES = \
	papers/common/parallel.h papers/common/parallel.c \
	papers/common/progress_bar.h papers/common/progress_bar.c
papers_libpapers_a_SOURCES += papers/analysis/fmlp.c papers/analysis/gcaps.c \
	papers/analysis/gcaps.h papers/analysis/gprio.c papers/analysis/methods.c \
	papers/analysis/least.c papers/analysis/least.h papers/analysis/mpcp.c \
	papers/analysis/rr.c papers/analysis/rta.c papers/analysis/rta.h \
	papers/analysis/rta_private.h papers/analysis/stgm.c papers/analysis/stgm.h
papers_libpapers_a_SOURCES += papers/fit/fit.h papers/fit/fit.c papers/fit/nnls.h \
	papers/fit/nnls.c papers/fit/calibrate.h papers/fit/calibrate.c papers/fit/entry.h \
	papers/fit/entry.c device/fitted.h device/fitted.c papers/fit/measured.h \
	papers/fit/measured.c papers/fit/score.h papers/fit/score.c papers/fit/effects.h \
	papers/fit/effects.c
papers_libpapers_a_SOURCES += \
	papers/sets/axis.h \
	papers/sets/cluster_tasks.c \
	papers/sets/csv.h papers/sets/csv.c \
	papers/sets/edl_apps.h papers/sets/edl_apps.c papers/sets/edl_apps.def \
	papers/sets/edl_study.h papers/sets/edl_study.c \
	papers/sets/gen_edl.h papers/sets/gen_edl.c \
	papers/sets/gen_gcaps.h papers/sets/gen_gcaps.c \
	papers/sets/gen_sbeet.h papers/sets/gen_sbeet.c \
	papers/sets/gen_stgm.h papers/sets/gen_stgm.c \
	papers/sets/gpus.h papers/sets/gpus.c \
	papers/sets/jsonl.h papers/sets/jsonl.c \
	papers/sets/random.h papers/sets/random.c \
	papers/sets/rt_sets.h papers/sets/rt_sets.c \
	papers/sets/rtsim_set.h papers/sets/rtsim_set.c \
	papers/sets/sbeet_hunt.h papers/sets/sbeet_hunt.c \
	papers/sets/sbeet_set.h papers/sets/sbeet_set.c
papers_libpapers_a_SOURCES += papers/sim/cluster.h papers/sim/cluster.c papers/sim/machine.h \
	papers/sim/machine.c papers/sim/machine_trace.h papers/sim/machine_trace.c \
	papers/sim/rtsim.h papers/sim/rtsim.c papers/sim/rtsim_private.h papers/sim/rtsim_check.c \
	papers/sim/rtsim_cores.c papers/sim/rtsim_gpu.c papers/sim/rtsim_list.c \
	papers/sim/rtsim_policy.c papers/sim/rtsim_steps.c papers/sim/rtsim_hunt.h \
	papers/sim/rtsim_hunt.c
papers_libpapers_a_CPPFLAGS = $(AM_CPPFLAGS) $(JSON_C_CFLAGS)
PAPERS_LIBS = papers/libpapers.a policy/libpolicy.a $(MODELS_LIBS) $(JSON_C_LIBS) -lpthread

# What the command `wattshare` takes from here: the verbs of papers/verbs/verbs.def and what they
# call.
papers_libverbs_a_SOURCES = papers/verbs/verbs.def papers/verbs/analyze.c \
	papers/verbs/analyze_plan.h papers/verbs/analyze_plan.c papers/verbs/cluster.c \
	papers/verbs/fit.c papers/verbs/fit_events.h papers/verbs/fit_events.c papers/verbs/gen.h \
	papers/verbs/gen.c papers/verbs/generators.def papers/verbs/gen_edl.c \
	papers/verbs/gen_rt.c papers/verbs/gen_sbeet.c papers/verbs/input.h papers/verbs/input.c \
	papers/verbs/optimum.c papers/verbs/sim.h papers/verbs/sim.c papers/verbs/sim_gpus.c \
	papers/verbs/sim_rt.h papers/verbs/sim_rt.c
papers_libverbs_a_SOURCES += papers/experiments/experiment.h papers/experiments/experiment.c \
	papers/experiments/experiments.def papers/experiments/consolidation.c \
	papers/experiments/edl.h papers/experiments/edl.c papers/experiments/edl_offline.c \
	papers/experiments/edl_online.c papers/experiments/gcaps.c \
	papers/experiments/gcaps_fig8.def papers/experiments/own.c papers/experiments/own_dvfs.c \
	papers/experiments/own_edl.c \
	papers/experiments/own_rt.c \
	papers/experiments/own_hunt.c papers/experiments/own_safe.c papers/experiments/rtsim.c \
	papers/experiments/sbeet.c papers/experiments/stgm.c papers/experiments/truth.h \
	papers/experiments/truth.c papers/experiments/truth_data.c papers/experiments/truth_2011.c \
	papers/experiments/truth_choice.c papers/experiments/truth_curves.c \
	papers/experiments/truth_settings.h papers/experiments/truth_settings.c \
	papers/experiments/truth_sms.h papers/experiments/truth_sms.c
papers_libverbs_a_SOURCES += papers/live/live.h papers/live/live.c papers/live/set.h \
	papers/live/set.c papers/live/consolidation.c papers/live/edl.c papers/live/measured.c \
	papers/live/rt.c papers/live/slurm.h papers/live/slurm.c papers/live/slurm_edl.c \
	papers/live/slurm_share.c
papers_libverbs_a_CPPFLAGS = $(CLI_CPPFLAGS)
EXTRA_DIST += papers/README.md papers/analysis/README.md papers/common/README.md \
	papers/experiments/README.md papers/fit/README.md papers/live/README.md \
	papers/sets/README.md papers/sim/README.md papers/verbs/README.md
