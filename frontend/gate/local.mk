# The gate: a libcuda.so.1 that hands every call on to the real one (doc/gate.md).
noinst_LIBRARIES += frontend/gate/libgate.a
frontend_gate_libgate_a_SOURCES = frontend/gate/gate.h frontend/gate/stubs.c frontend/gate/real.c \
	frontend/gate/calls.c frontend/gate/segment.c frontend/gate/daemon.c \
	frontend/channel/channel.c frontend/channel/open.c frontend/channel/segment.c \
	frontend/channel/ring.c frontend/channel/zmq_load.c
wslib_PROGRAMS += frontend/gate/libwattshare-gate.so
frontend_gate_libwattshare_gate_so_SOURCES = frontend/gate/gate.h
frontend_gate_libwattshare_gate_so_LDFLAGS = $(AM_LDFLAGS) -shared -Wl,-soname,libcuda.so.1 \
	-Wl,-z,relro -Wl,-z,now -Wl,-z,nodelete -Wl,-Bsymbolic \
	-Wl,--version-script,$(top_srcdir)/frontend/gate/gate.map \
	-Wl,--whole-archive,frontend/gate/libgate.a,--no-whole-archive
frontend_gate_libwattshare_gate_so_LDADD = $(FRONTEND_LIBS)
frontend_gate_libwattshare_gate_so_DEPENDENCIES = frontend/gate/libgate.a base/libbase.a \
	protocol/libprotocol.a $(top_srcdir)/frontend/gate/gate.map
# A folder where it has the driver's file names, as frontend/wattshare-driver.
frontend/gate/wattshare-gate/stamp: frontend/gate/libwattshare-gate.so
	$(AM_V_GEN)$(MKDIR_P) frontend/gate/wattshare-gate && cd frontend/gate/wattshare-gate && \
		ln -sf ../libwattshare-gate.so libcuda.so.1 && ln -sf ../libwattshare-gate.so libcuda.so && : >stamp
all-local: frontend/gate/wattshare-gate/stamp
CLEANFILES += frontend/gate/wattshare-gate/libcuda.so.1 frontend/gate/wattshare-gate/libcuda.so \
	frontend/gate/wattshare-gate/stamp
EXTRA_DIST += frontend/gate/gate.map frontend/gate/README.md
