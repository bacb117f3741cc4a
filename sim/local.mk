# sim: simulators, generators, reading of task sets. One line per file.
noinst_LIBRARIES += sim/libsim.a
sim_libsim_a_SOURCES = sim/jsonl.h sim/jsonl.c \
	sim/cluster.h sim/cluster.c sim/cluster_tasks.c \
	sim/csv.h sim/csv.c \
	sim/edl_apps.h sim/edl_apps.c sim/edl_apps.def \
	sim/edl_study.h sim/edl_study.c \
	sim/gen_edl.h sim/gen_edl.c \
	sim/random.h sim/random.c
sim_libsim_a_CPPFLAGS = $(AM_CPPFLAGS) $(JSON_C_CFLAGS)
SIM_LIBS = sim/libsim.a policy/libpolicy.a $(MODELS_LIBS) $(JSON_C_LIBS)
EXTRA_DIST += sim/README.md
