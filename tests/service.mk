# The daemon as a service: what a manager does is done by small programs, so that it runs
# everywhere.
check_PROGRAMS += tests/process/notify_socket tests/process/listen_fds tests/process/http_get
tests_process_notify_socket_SOURCES = tests/process/notify_socket.c
tests_process_http_get_SOURCES = tests/process/http_get.c
tests_process_listen_fds_SOURCES = tests/process/listen_fds.c
dist_check_SCRIPTS += tests/process/service.sh tests/process/users.sh
TESTS += tests/process/service.sh tests/process/users.sh
check_DATA += $(SYSTEMD_MADE)

check_PROGRAMS += tests/unit/backend/test_service
tests_unit_backend_test_service_SOURCES = tests/unit/backend/test_service.c
tests_unit_backend_test_service_LDADD = $(WSSERVER_LDADD) $(TEST_LDADD) $(ZMQ_LIBS)
TESTS += tests/unit/backend/test_service

check_PROGRAMS += tests/process/trace_check
tests_process_trace_check_SOURCES = tests/process/trace_check.c
tests_process_trace_check_CPPFLAGS = $(AM_CPPFLAGS) $(JSON_C_CFLAGS)
tests_process_trace_check_LDADD = $(JSON_C_LIBS) -lm
dist_check_SCRIPTS += tests/process/operations.sh
TESTS += tests/process/operations.sh

dist_check_SCRIPTS += tests/process/completion.sh tests/process/verbs.sh
TESTS += tests/process/completion.sh tests/process/verbs.sh
check_DATA += tools/completion/wattshare $(man_MANS) $(man1_MANS)
EXTRA_DIST += tests/package.sh tests/boot.sh

# What wattshare status prints.
check_PROGRAMS += tests/unit/cli/test_status
tests_unit_cli_test_status_SOURCES = tests/unit/cli/test_status.c cli/common/message.c \
	cli/verbs/status_json.c cli/verbs/status_text.c cli/common/text.c
tests_unit_cli_test_status_CPPFLAGS = $(AM_CPPFLAGS) $(JSON_C_CFLAGS) $(PROTOBUF_C_CFLAGS) $(ZMQ_CFLAGS)
tests_unit_cli_test_status_LDADD = protocol/libprotocol.a base/libbase.a $(PROTOBUF_C_LIBS) \
	$(JSON_C_LIBS) $(ZMQ_LIBS) $(TEST_LDADD)
TESTS += tests/unit/cli/test_status
# …and what becomes of it where the daemon lies.
check_PROGRAMS += tests/unit/cli/test_liar
tests_unit_cli_test_liar_SOURCES = tests/unit/cli/test_liar.c
tests_unit_cli_test_liar_CPPFLAGS = $(AM_CPPFLAGS) $(PROTOBUF_C_CFLAGS)
tests_unit_cli_test_liar_LDADD = protocol/libprotocol.a base/libbase.a $(PROTOBUF_C_LIBS) \
	$(TEST_LDADD) -lpthread
TESTS += tests/unit/cli/test_liar
EXTRA_DIST += tests/unit/cli/README.md tests/unit/cli/status.json tests/unit/cli/status.txt
