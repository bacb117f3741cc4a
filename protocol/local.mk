# protocol: wattshare.proto, compiled by protoc-c into the build tree
BUILT_SOURCES += protocol/wattshare.pb-c.h
CLEANFILES += protocol/wattshare.pb-c.c protocol/wattshare.pb-c.h
EXTRA_DIST += protocol/wattshare.proto protocol/README.md
noinst_LIBRARIES += protocol/libprotocol.a
protocol_libprotocol_a_SOURCES = protocol/protocol.h protocol/ask.h protocol/ask.c \
	protocol/curve.h protocol/curve.c protocol/handoff.h protocol/handoff.c protocol/monitor.h protocol/monitor.c protocol/ring.h \
	protocol/ring.c
nodist_protocol_libprotocol_a_SOURCES = protocol/wattshare.pb-c.c protocol/wattshare.pb-c.h
protocol_libprotocol_a_CFLAGS = $(AM_CFLAGS) $(PROTOBUF_C_CFLAGS) -Wno-shadow

protocol/wattshare.pb-c.c protocol/wattshare.pb-c.h: protocol/wattshare.stamp
	@test -f $@ || { rm -f protocol/wattshare.stamp; $(MAKE) $(AM_MAKEFLAGS) protocol/wattshare.stamp; }
protocol/wattshare.stamp: $(top_srcdir)/protocol/wattshare.proto
	$(AM_V_GEN)$(MKDIR_P) protocol && cd $(top_srcdir)/protocol && $(PROTOC_C) --c_out=$(abs_top_builddir)/protocol wattshare.proto && touch $(abs_top_builddir)/$@
CLEANFILES += protocol/wattshare.stamp
