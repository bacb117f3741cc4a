# Work on streams, host functions, capture, graphs.
FACADE_SOURCES += frontend/stream/host.h frontend/stream/host.c frontend/graph/capture.h frontend/graph/capture.c frontend/graph/types.h frontend/graph/graph.h \
	frontend/graph/graph.c frontend/graph/node.c frontend/graph/exec.c frontend/graph/launch.c frontend/graph/memory.c \
	frontend/graph/params.h frontend/graph/params.c frontend/graph/dot.c frontend/graph/userobject.c \
	frontend/runtime/graph.c frontend/runtime/graph_node.c frontend/runtime/capture.c frontend/driver/graph.c frontend/driver/graph_node.c \
	frontend/driver/capture.c frontend/driver/memop.c
