# policy: decisions. One file per policy, one line per file.
noinst_LIBRARIES += policy/libpolicy.a
policy_libpolicy_a_SOURCES = policy/policy.h policy/policy.c policy/policies.def \
	policy/analysis/fmlp.c \
	policy/analysis/gcaps.c policy/analysis/gcaps.h \
	policy/analysis/gprio.c \
	policy/analysis/methods.c \
	policy/analysis/mpcp.c \
	policy/analysis/rr.c \
	policy/analysis/rta.c policy/analysis/rta.h policy/analysis/rta_private.h \
	policy/analysis/stgm.c policy/analysis/stgm.h \
	policy/consolidate.c
POLICY_LIBS = policy/libpolicy.a
EXTRA_DIST += policy/README.md
