# sim: simulators, generators, reading of task sets. One line per file.
noinst_LIBRARIES += sim/libsim.a
sim_libsim_a_SOURCES = sim/jsonl.h sim/jsonl.c \
	sim/random.h sim/random.c \
	sim/rt.h sim/rt.c \
	sim/rt_hunt.h sim/rt_hunt.c \
	sim/rt_input.h sim/rt_input.c
sim_libsim_a_CPPFLAGS = $(AM_CPPFLAGS) $(JSON_C_CFLAGS)
SIM_LIBS = sim/libsim.a policy/libpolicy.a $(MODELS_LIBS) $(JSON_C_LIBS)
EXTRA_DIST += sim/README.md
