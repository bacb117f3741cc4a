# frontend tests
EXTRA_DIST += tests/unit/frontend/README.md
FRONTEND_TEST_LIBS = frontend/libfrontend.a protocol/libprotocol.a base/libbase.a \
	$(PROTOBUF_C_LIBS) $(LIBMD_LIBS) -ldl -lpthread
check_PROGRAMS += tests/unit/frontend/test_session
tests_unit_frontend_test_session_SOURCES = tests/unit/frontend/test_session.c \
	tests/unit/frontend/fake_daemon.h tests/unit/frontend/fake_daemon.c
tests_unit_frontend_test_session_LDADD = $(FRONTEND_TEST_LIBS) $(ZMQ_LIBS) $(TEST_LDADD)
TESTS += tests/unit/frontend/test_session

# Its functions bear the names of CUDA's: without the façades.
check_PROGRAMS += tests/unit/frontend/test_redirect
tests_unit_frontend_test_redirect_SOURCES = tests/unit/frontend/test_redirect.c \
	frontend/interpose/redirect.c frontend/interpose/toolkit.c frontend/interpose/variables.c
# It writes over functions, whose beginnings ThreadSanitizer would change; it has one thread.
tests_unit_frontend_test_redirect_CFLAGS = $(AM_CFLAGS) -fno-sanitize=thread
tests_unit_frontend_test_redirect_LDADD = base/libbase.a $(TEST_LDADD)
TESTS += tests/unit/frontend/test_redirect

# Programs for tests/process/preload.sh
EXTRA_DIST += tests/process/lookalike.h
check_PROGRAMS += tests/process/lookalike_program tests/process/lookalike_library.so \
	tests/process/own_variables.so \
	tests/process/driver_user tests/process/runpath_main
tests_process_lookalike_program_SOURCES = tests/process/lookalike_program.c
tests_process_lookalike_program_LDADD = -ldl
tests_process_lookalike_library_so_SOURCES = tests/process/lookalike_library.c
tests_process_lookalike_library_so_LDFLAGS = $(AM_LDFLAGS) -shared
tests_process_own_variables_so_SOURCES = tests/process/own_variables.c
tests_process_own_variables_so_LDFLAGS = $(AM_LDFLAGS) -shared
tests_process_driver_user_SOURCES = tests/process/driver_user.c
tests_process_driver_user_LDADD = frontend/libwattshare.so -ldl
tests_process_runpath_main_SOURCES = tests/process/runpath_main.c
tests_process_runpath_main_LDFLAGS = $(AM_LDFLAGS) '-Wl,-rpath,$$ORIGIN'
tests_process_runpath_main_LDADD = -ldl
dist_check_SCRIPTS += tests/process/preload.sh
TESTS += tests/process/preload.sh

check_PROGRAMS += tests/process/session_client
tests_process_session_client_SOURCES = tests/process/session_client.c
tests_process_session_client_LDADD = $(FRONTEND_TEST_LIBS)
dist_check_SCRIPTS += tests/process/daemon_dies.sh
TESTS += tests/process/daemon_dies.sh
include tests/facade.mk
