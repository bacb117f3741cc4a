# ptx tests
CUBIN_MAKE = tests/device/cubin_make.h tests/device/cubin_make.c
PTX_TEST_LDADD = ptx/libptx.a base/libbase.a $(LZ4_LIBS) $(ZSTD_LIBS)

EXTRA_DIST += tests/lib/cpu_time.h tests/unit/ptx/README.md
check_PROGRAMS += tests/unit/ptx/test_parse tests/unit/ptx/test_fixtures tests/unit/ptx/test_cfg \
	tests/unit/ptx/test_fatbin
tests_unit_ptx_test_parse_SOURCES = tests/unit/ptx/test_parse.c
tests_unit_ptx_test_parse_LDADD = $(PTX_TEST_LDADD) $(TEST_LDADD)
tests_unit_ptx_test_fixtures_SOURCES = tests/unit/ptx/test_fixtures.c
tests_unit_ptx_test_fixtures_LDADD = $(PTX_TEST_LDADD) $(TEST_LDADD)
tests_unit_ptx_test_cfg_SOURCES = tests/unit/ptx/test_cfg.c
tests_unit_ptx_test_cfg_LDADD = $(PTX_TEST_LDADD) $(TEST_LDADD)
tests_unit_ptx_test_fatbin_SOURCES = tests/unit/ptx/test_fatbin.c
tests_unit_ptx_test_fatbin_CFLAGS = $(AM_CFLAGS) $(LZ4_CFLAGS) $(ZSTD_CFLAGS)
tests_unit_ptx_test_fatbin_LDADD = $(PTX_TEST_LDADD) $(TEST_LDADD)
check_PROGRAMS += tests/unit/ptx/test_opcodes
tests_unit_ptx_test_opcodes_SOURCES = tests/unit/ptx/test_opcodes.c
tests_unit_ptx_test_opcodes_LDADD = $(PTX_TEST_LDADD) $(TEST_LDADD)
TESTS += tests/unit/ptx/test_opcodes
check_PROGRAMS += tests/unit/ptx/test_cubin
tests_unit_ptx_test_cubin_SOURCES = tests/unit/ptx/test_cubin.c $(CUBIN_MAKE)
tests_unit_ptx_test_cubin_CPPFLAGS = $(AM_CPPFLAGS) -DWS_SRCDIR='"$(abs_top_srcdir)"'
tests_unit_ptx_test_cubin_LDADD = $(PTX_TEST_LDADD) $(TEST_LDADD)
TESTS += tests/unit/ptx/test_cubin
check_PROGRAMS += tests/unit/ptx/test_link
tests_unit_ptx_test_link_SOURCES = tests/unit/ptx/test_link.c
tests_unit_ptx_test_link_LDADD = $(PTX_TEST_LDADD) $(TEST_LDADD)
TESTS += tests/unit/ptx/test_link
TESTS += tests/unit/ptx/test_parse tests/unit/ptx/test_fixtures tests/unit/ptx/test_cfg \
	tests/unit/ptx/test_fatbin

# What nvcc makes of programs, where it is found.
check_PROGRAMS += tests/ptx/roundtrip
tests_ptx_roundtrip_SOURCES = tests/ptx/roundtrip.c
tests_ptx_roundtrip_LDADD = $(PTX_TEST_LDADD)
dist_check_SCRIPTS += tests/ptx/nvcc.sh
TESTS += tests/ptx/nvcc.sh

EXTRA_DIST += tests/ptx/census.txt tests/ptx/census.ptx tests/ptx/ops.ptx tests/ptx/forms.ptx \
	tests/ptx/old14.ptx tests/ptx/scopes.ptx tests/ptx/init.ptx tests/ptx/funcs.ptx \
	tests/ptx/err tests/ptx/cu tests/ptx/README.md
