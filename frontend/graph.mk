# Work on streams, host functions, capture, graphs.
FACADE_SOURCES += frontend/host.h frontend/host.c frontend/capture.h frontend/capture.c frontend/graph_types.h frontend/graph.h \
	frontend/graph.c frontend/graph_node.c frontend/graph_exec.c frontend/graph_launch.c frontend/graph_memory.c \
	frontend/graph_params.h frontend/graph_params.c frontend/graph_dot.c frontend/userobject.c \
	frontend/rt_graph.c frontend/rt_graph_node.c frontend/rt_capture.c frontend/drv_graph.c frontend/drv_graph_node.c \
	frontend/drv_capture.c frontend/drv_memop.c
