# ptx: fatbin reader, PTX lexer, parser, IR, printer, validator, control flow. Includes base only.
noinst_LIBRARIES += ptx/libptx.a
ptx_libptx_a_SOURCES = ptx/ptx.h ptx/opcodes.def ptx/op.c
ptx_libptx_a_CFLAGS = $(AM_CFLAGS) $(LZ4_CFLAGS) $(ZSTD_CFLAGS)
EXTRA_DIST += ptx/README.md
