# frontend tests
FRONTEND_TEST_LIBS = frontend/libfrontend.a base/libbase.a protocol/libprotocol.a $(PROTOBUF_C_LIBS) $(LIBMD_LIBS) -ldl -lpthread
check_PROGRAMS += tests/unit/test_frontend_session
tests_unit_test_frontend_session_SOURCES = tests/unit/test_frontend_session.c tests/unit/fake_daemon.h tests/unit/fake_daemon.c
tests_unit_test_frontend_session_LDADD = $(FRONTEND_TEST_LIBS) $(ZMQ_LIBS) $(TEST_LDADD)
TESTS += tests/unit/test_frontend_session
