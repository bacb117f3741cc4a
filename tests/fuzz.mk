# Fuzz targets. `make check` runs each over its corpus with a small main of ours; `./dev fuzz NAME
# SECONDS` links libFuzzer's.
if FUZZER
FUZZ_DRIVER =
FUZZ_LINKFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
else
noinst_LIBRARIES += tests/fuzz/libdriver.a
tests_fuzz_libdriver_a_SOURCES = tests/fuzz/driver.c
FUZZ_DRIVER = tests/fuzz/libdriver.a
FUZZ_LINKFLAGS = $(AM_LDFLAGS)
endif

check_PROGRAMS += tests/fuzz/fuzz_config
tests_fuzz_fuzz_config_SOURCES = tests/fuzz/fuzz_config.c
tests_fuzz_fuzz_config_LDFLAGS = $(FUZZ_LINKFLAGS)
tests_fuzz_fuzz_config_LDADD = $(FUZZ_DRIVER) $(BACKEND_LDADD)

check_PROGRAMS += tests/fuzz/fuzz_coverage
tests_fuzz_fuzz_coverage_SOURCES = tests/fuzz/fuzz_coverage.c
tests_fuzz_fuzz_coverage_LDFLAGS = $(FUZZ_LINKFLAGS)
tests_fuzz_fuzz_coverage_LDADD = $(FUZZ_DRIVER) $(COVERAGE_LIBS)

check_PROGRAMS += tests/fuzz/fuzz_cubin
tests_fuzz_fuzz_cubin_SOURCES = tests/fuzz/fuzz_cubin.c
tests_fuzz_fuzz_cubin_LDFLAGS = $(FUZZ_LINKFLAGS)
tests_fuzz_fuzz_cubin_LDADD = $(FUZZ_DRIVER) $(PTX_TEST_LDADD)

check_PROGRAMS += tests/fuzz/fuzz_decode
tests_fuzz_fuzz_decode_SOURCES = tests/fuzz/fuzz_decode.c
tests_fuzz_fuzz_decode_LDFLAGS = $(FUZZ_LINKFLAGS)
tests_fuzz_fuzz_decode_LDADD = $(FUZZ_DRIVER) $(BACKEND_LDADD)

check_PROGRAMS += tests/fuzz/fuzz_exec
tests_fuzz_fuzz_exec_SOURCES = tests/fuzz/fuzz_exec.c
tests_fuzz_fuzz_exec_LDFLAGS = $(FUZZ_LINKFLAGS)
tests_fuzz_fuzz_exec_LDADD = $(FUZZ_DRIVER) $(EXEC_LDADD)

check_PROGRAMS += tests/fuzz/fuzz_fatbin
tests_fuzz_fuzz_fatbin_SOURCES = tests/fuzz/fuzz_fatbin.c
tests_fuzz_fuzz_fatbin_LDFLAGS = $(FUZZ_LINKFLAGS)
tests_fuzz_fuzz_fatbin_LDADD = $(FUZZ_DRIVER) $(PTX_TEST_LDADD)

check_PROGRAMS += tests/fuzz/fuzz_link
tests_fuzz_fuzz_link_SOURCES = tests/fuzz/fuzz_link.c
tests_fuzz_fuzz_link_LDFLAGS = $(FUZZ_LINKFLAGS)
tests_fuzz_fuzz_link_LDADD = $(FUZZ_DRIVER) $(PTX_TEST_LDADD)

check_PROGRAMS += tests/fuzz/fuzz_passes
tests_fuzz_fuzz_passes_SOURCES = tests/fuzz/fuzz_passes.c
tests_fuzz_fuzz_passes_LDFLAGS = $(FUZZ_LINKFLAGS)
tests_fuzz_fuzz_passes_LDADD = $(FUZZ_DRIVER) $(PTX_TEST_LDADD)

check_PROGRAMS += tests/fuzz/fuzz_protocol
tests_fuzz_fuzz_protocol_SOURCES = tests/fuzz/fuzz_protocol.c
tests_fuzz_fuzz_protocol_LDFLAGS = $(FUZZ_LINKFLAGS)
tests_fuzz_fuzz_protocol_LDADD = $(FUZZ_DRIVER) $(WSSERVER_LDADD)

check_PROGRAMS += tests/fuzz/fuzz_ptx
tests_fuzz_fuzz_ptx_SOURCES = tests/fuzz/fuzz_ptx.c
tests_fuzz_fuzz_ptx_LDFLAGS = $(FUZZ_LINKFLAGS)
tests_fuzz_fuzz_ptx_LDADD = $(FUZZ_DRIVER) $(PTX_TEST_LDADD)

check_PROGRAMS += tests/fuzz/fuzz_session
tests_fuzz_fuzz_session_SOURCES = tests/fuzz/fuzz_session.c tests/fuzz/session_commands.h \
	tests/fuzz/session_commands.c tests/fuzz/bytes.h tests/fuzz/side.h tests/fuzz/side.c
tests_fuzz_fuzz_session_LDFLAGS = $(FUZZ_LINKFLAGS)
tests_fuzz_fuzz_session_LDADD = $(FUZZ_DRIVER) $(BACKEND_LDADD)

check_PROGRAMS += tests/fuzz/fuzz_side
tests_fuzz_fuzz_side_SOURCES = tests/fuzz/fuzz_side.c tests/fuzz/bytes.h tests/fuzz/side.h tests/fuzz/side.c
tests_fuzz_fuzz_side_LDFLAGS = $(FUZZ_LINKFLAGS)
tests_fuzz_fuzz_side_LDADD = $(FUZZ_DRIVER) $(WSSERVER_LDADD)

check_PROGRAMS += tests/fuzz/fuzz_zmtp
tests_fuzz_fuzz_zmtp_SOURCES = tests/fuzz/fuzz_zmtp.c tests/fuzz/bytes.h tests/lib/curve_client.h \
	tests/lib/curve_client.c
tests_fuzz_fuzz_zmtp_CPPFLAGS = $(AM_CPPFLAGS) $(SODIUM_CFLAGS)
tests_fuzz_fuzz_zmtp_LDFLAGS = $(FUZZ_LINKFLAGS)
tests_fuzz_fuzz_zmtp_LDADD = $(FUZZ_DRIVER) $(BACKEND_LDADD)

dist_check_SCRIPTS += tests/fuzz/exec.sh tests/fuzz/protocol.sh tests/fuzz/ptx.sh tests/fuzz/server.sh
TESTS += tests/fuzz/exec.sh tests/fuzz/protocol.sh tests/fuzz/ptx.sh tests/fuzz/server.sh
dist_noinst_SCRIPTS += tests/fuzz/fuzz.sh tests/fuzz/coverage.sh
EXTRA_DIST += tests/fuzz/README.md tests/fuzz/ptx.dict tests/corpus/config tests/corpus/coverage \
	tests/corpus/cubin tests/corpus/decode tests/corpus/exec tests/corpus/fatbin \
	tests/corpus/link tests/corpus/protocol tests/corpus/ptx tests/corpus/session \
	tests/corpus/side tests/corpus/zmtp
