# sim: simulators, generators, reading of task sets. One line per file.
noinst_LIBRARIES += sim/libsim.a
sim_libsim_a_SOURCES = sim/jsonl.h sim/jsonl.c \
	sim/cluster.h sim/cluster.c sim/cluster_tasks.c \
	sim/csv.h sim/csv.c \
	sim/edl_apps.h sim/edl_apps.c sim/edl_apps.def \
	sim/edl_study.h sim/edl_study.c \
	sim/gen_edl.h sim/gen_edl.c \
	sim/random.h sim/random.c
sim_libsim_a_SOURCES += sim/trace.h sim/trace.c sim/trace_machine.c
sim_libsim_a_SOURCES += sim/gpus.h sim/gpus.c sim/machine.h sim/machine.c
sim_libsim_a_SOURCES += sim/gen_sbeet.h sim/gen_sbeet.c sim/sbeet_set.h sim/sbeet_set.c
sim_libsim_a_SOURCES += sim/axis.h sim/gen_gcaps.h sim/gen_gcaps.c sim/gen_stgm.h sim/gen_stgm.c sim/rt_sets.h sim/rt_sets.c
sim_libsim_a_SOURCES += sim/rtsim.h sim/rtsim.c sim/rtsim_private.h sim/rtsim_check.c \
	sim/rtsim_cores.c sim/rtsim_gpu.c sim/rtsim_list.c sim/rtsim_policy.c sim/rtsim_steps.c sim/rtsim_hunt.h sim/rtsim_hunt.c sim/rtsim_set.h sim/rtsim_set.c
sim_libsim_a_CPPFLAGS = $(AM_CPPFLAGS) $(JSON_C_CFLAGS)
SIM_LIBS = sim/libsim.a policy/libpolicy.a $(MODELS_LIBS) $(JSON_C_LIBS)
EXTRA_DIST += sim/README.md
