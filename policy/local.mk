# policy: decisions. One file per policy, one line per file.
noinst_LIBRARIES += policy/libpolicy.a
policy_libpolicy_a_SOURCES = policy/policy.h policy/policy.c policy/policies.def \
	policy/consolidate.c \
	policy/fifo.c \
	policy/gcaps.c policy/runlist.h policy/runlist.c \
	policy/rr.c \
	policy/stgm.c
POLICY_LIBS = policy/libpolicy.a
EXTRA_DIST += policy/README.md
