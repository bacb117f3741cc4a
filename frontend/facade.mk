# What CUDA's headers declare, and what it is made of: every file of these rooms, one variable for
# each room.
FACADE_BOTH = frontend/both/advice.c frontend/both/capture.c frontend/both/device.c \
	frontend/both/event.c frontend/both/function.c frontend/both/function.h \
	frontend/both/graph.c frontend/both/graph_node.c frontend/both/graph_node.h \
	frontend/both/ipc.c frontend/both/library.c frontend/both/logs.c frontend/both/pool.c \
	frontend/both/stream.c
FACADE_RUNTIME = frontend/runtime/array.c frontend/runtime/before13.c frontend/runtime/before13.h \
	frontend/runtime/device.c frontend/runtime/driver_entry_point.c frontend/runtime/error.c \
	frontend/runtime/last_error.c \
	frontend/runtime/execution.c frontend/runtime/graph.c frontend/runtime/memory.c \
	frontend/runtime/peers.c frontend/runtime/registration.c frontend/runtime/texture.c
FACADE_DRIVER = frontend/driver/array.c frontend/driver/coredump.c frontend/driver/ctx.c \
	frontend/driver/device.c frontend/driver/exec.c frontend/driver/graph.c \
	frontend/driver/graph_node.c frontend/driver/init.c frontend/driver/library.c \
	frontend/driver/link.c frontend/driver/memop.c frontend/driver/memory.c \
	frontend/driver/module.c frontend/driver/peers.c frontend/driver/stream.c \
	frontend/driver/texref.c frontend/driver/texture.c frontend/driver/unified.c \
	frontend/driver/vmm.c
FACADE_COMPILERS = frontend/compilers/compilers.c frontend/compilers/compilers.h \
	frontend/compilers/exec.c frontend/compilers/nvjitlink.c frontend/compilers/nvrtc.c
FACADE_CONTEXT = frontend/context/attributes.c frontend/context/attributes.h \
	frontend/context/context.c frontend/context/context.h \
	frontend/context/device_attributes.def frontend/context/limits.c frontend/context/limits.h \
	frontend/context/slab.c frontend/context/slab.h
FACADE_MEMORY = frontend/memory/advice.c frontend/memory/advice.h frontend/memory/batch.c \
	frontend/memory/batch.h frontend/memory/copy.c frontend/memory/copy.h \
	frontend/memory/copy_params.c frontend/memory/copy_params.h frontend/memory/hostmem.c \
	frontend/memory/hostmem.h frontend/memory/ipc.c frontend/memory/ipc.h \
	frontend/memory/managed.c frontend/memory/managed.h frontend/memory/peers.c \
	frontend/memory/pool.c frontend/memory/pool.h frontend/memory/pool_private.h \
	frontend/memory/pool_share.c frontend/memory/vmm.c frontend/memory/vmm.h
FACADE_MODULE = frontend/module/function.c frontend/module/jit.c frontend/module/jit.h \
	frontend/module/launch.c frontend/module/link_inputs.c frontend/module/link_inputs.h \
	frontend/module/module.c frontend/module/module.h frontend/module/registry.c \
	frontend/module/registry.h
FACADE_STREAM = frontend/stream/host.c frontend/stream/host.h frontend/stream/work.c frontend/stream/work.h
FACADE_GRAPH = frontend/graph/capture.c frontend/graph/capture.h frontend/graph/content.c \
	frontend/graph/dot.c frontend/graph/exec.c frontend/graph/graph.c frontend/graph/graph.h \
	frontend/graph/launch.c frontend/graph/memory.c frontend/graph/node.c \
	frontend/graph/node_params.c frontend/graph/params.h frontend/graph/query.c \
	frontend/graph/types.h frontend/graph/userobject.c
FACADE_TEXTURE = frontend/texture/array.c frontend/texture/array.h frontend/texture/cuda_texture.h \
	frontend/texture/header.c frontend/texture/texel.c frontend/texture/texref.c \
	frontend/texture/texref.h frontend/texture/texture.c frontend/texture/texture.h
FACADE_INTERPOSE = frontend/interpose/entrypoints.c frontend/interpose/entrypoints.def
FACADE_SOURCES = frontend/errors.def frontend/errors.h frontend/errors.c frontend/facade.h \
	frontend/cuda_types.h frontend/cuda_device_prop.h $(FACADE_BOTH) $(FACADE_RUNTIME) \
	$(FACADE_DRIVER) $(FACADE_COMPILERS) $(FACADE_CONTEXT) $(FACADE_MEMORY) $(FACADE_MODULE) \
	$(FACADE_STREAM) $(FACADE_GRAPH) $(FACADE_TEXTURE) $(FACADE_INTERPOSE)
