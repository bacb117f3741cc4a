# policy: decisions. One file per policy, one line per file.
noinst_LIBRARIES += policy/libpolicy.a
policy_libpolicy_a_SOURCES = policy/policy.h policy/policy.c policy/policies.def \
	policy/bin_packing.c \
	policy/consolidate.c \
	policy/edf_fit.c \
	policy/edl.h policy/edl.c \
	policy/edl_core.h policy/edl_core.c \
	policy/edl_pairs.h policy/edl_pairs.c \
	policy/lpt_ff.c \
	policy/min_tree.h policy/min_tree.c \
	policy/move.h policy/move.c
policy_libpolicy_a_SOURCES += policy/bcf.c policy/lcf.c policy/load_dist.c
policy_libpolicy_a_SOURCES += policy/sbeet.h policy/sbeet_core.h policy/sbeet_core.c \
	policy/sbeet_assign.c policy/sbeet.c
policy_libpolicy_a_SOURCES += policy/sbeet_mg.c policy/sbeet_mg_offline.c
policy_libpolicy_a_SOURCES += policy/fifo.c policy/gcaps.c policy/rr.c policy/runlist.h \
	policy/runlist.c policy/stgm.c
policy_libpolicy_a_SOURCES += policy/clocks.h policy/clocks.c policy/stop.h policy/stop.c
policy_libpolicy_a_SOURCES += policy/lookahead/fallback.h policy/lookahead/fallback.c \
	policy/lookahead/rollout.h policy/lookahead/rollout.c policy/lookahead/sizes.c \
	policy/lookahead/margin.c policy/lookahead/site.c policy/lookahead/taking_off.c \
	policy/lookahead/servers.c policy/lookahead/wattshare.c
POLICY_LIBS = policy/libpolicy.a
EXTRA_DIST += policy/README.md policy/lookahead/README.md
