# Attacks on a daemon (tests/attack/README.md). make attack runs them all, or only
# those that ATTACK='ROW or NAME…' names.
check_PROGRAMS += tests/attack/attack tests/attack/bystander tests/attack/libclockjump.so \
	tests/attack/libturns.so
tests_attack_attack_SOURCES = tests/attack/attack.h tests/attack/main.c tests/attack/daemon.h \
	tests/attack/turns.h tests/attack/daemon.c tests/attack/people.h tests/attack/people.c \
	tests/attack/pace.h tests/attack/pace.c tests/attack/raw.h tests/attack/raw.c \
	tests/attack/connect.c tests/attack/message.c tests/attack/code.c tests/attack/share.c \
	tests/attack/host.c tests/attack/work.c tests/attack/walk.c tests/attack/gpu.c \
	tests/attack/linger.c tests/attack/many.c tests/attack/slowfile.c tests/attack/keys.c tests/attack/left.h \
	tests/attack/left.c tests/lib/curve_client.h tests/lib/curve_client.c
tests_attack_attack_CPPFLAGS = $(AM_CPPFLAGS) $(ZMQ_CFLAGS) $(PROTOBUF_C_CFLAGS) $(LIBMD_CFLAGS) \
	$(ZSTD_CFLAGS) $(SODIUM_CFLAGS)
tests_attack_attack_LDADD = protocol/libprotocol.a base/libbase.a $(ZMQ_LIBS) $(PROTOBUF_C_LIBS) \
	$(LIBMD_LIBS) $(ZSTD_LIBS) $(SODIUM_LIBS)
# As all programs of tests/cuda: nothing of ours in it.
tests_attack_bystander_SOURCES = tests/attack/bystander.c tests/attack/pace.h tests/attack/pace.c \
	tests/cuda/drv_load_dlsym.c $(CUDA_DRV)
tests_attack_bystander_CFLAGS = $(CUDA_CFLAGS)
tests_attack_bystander_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_attack_bystander_LDFLAGS =
tests_attack_bystander_LDADD = -ldl -lm
tests_attack_libclockjump_so_SOURCES = tests/attack/clockjump.c
tests_attack_libclockjump_so_CFLAGS = $(CUDA_CFLAGS) -fPIC
tests_attack_libclockjump_so_LDFLAGS =
tests_attack_libclockjump_so_LINK = $(CC) $(CFLAGS) -shared -o $@
tests_attack_libturns_so_SOURCES = tests/attack/turns.h tests/attack/turns.c
tests_attack_libturns_so_CFLAGS = $(CUDA_CFLAGS) -fPIC
tests_attack_libturns_so_LDFLAGS =
tests_attack_libturns_so_LINK = $(CC) $(CFLAGS) -shared -o $@
dist_check_SCRIPTS += tests/attack/quick.sh
TESTS += tests/attack/quick.sh
EXTRA_DIST += tests/attack/README.md

attack: all tests/attack/attack tests/attack/bystander tests/attack/libclockjump.so tests/attack/libturns.so
	tests/attack/attack $(ATTACK)
.PHONY: attack
