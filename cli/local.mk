# cli: the wattshare command
bin_PROGRAMS += cli/wattshare
cli_wattshare_SOURCES = cli/main.c cli/cli.h cli/parts.c cli/run.c cli/status.c cli/private.c cli/private.h \
	cli/elf_kind.c cli/elf_kind.h
cli_wattshare_CPPFLAGS = $(AM_CPPFLAGS) $(ZMQ_CFLAGS) $(PROTOBUF_C_CFLAGS) $(JSON_C_CFLAGS) \
	-DSBINDIR='"$(sbindir)"' -DWSLIBDIR='"$(wslibdir)"'
cli_wattshare_LDADD = protocol/libprotocol.a base/libbase.a $(ZMQ_LIBS) $(PROTOBUF_C_LIBS) $(JSON_C_LIBS)
EXTRA_DIST += cli/README.md LICENSE NEWS
