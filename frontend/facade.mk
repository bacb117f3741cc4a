# The façades: what CUDA's headers declare. FACADE_SOURCES lists every file.
FACADE_SOURCES = frontend/interpose/entrypoints.def frontend/interpose/entrypoints.c frontend/errors.def frontend/errors.h frontend/errors.c \
	frontend/facade.h frontend/cuda_types.h frontend/context/slab.h frontend/context/slab.c frontend/context/context.h frontend/context/context.c \
	frontend/module/module.h frontend/module/module.c frontend/memory/managed.h frontend/memory/managed.c frontend/context/attributes.h frontend/context/attributes.c frontend/memory/hostmem.h frontend/memory/hostmem.c \
	frontend/texture/cuda_texture.h frontend/texture/array.h frontend/texture/array.c frontend/texture/texel.c \
	frontend/texture/texture.h frontend/texture/texture.c frontend/texture/header.c frontend/runtime/array.c frontend/runtime/texture.c \
	frontend/driver/array.c frontend/driver/texture.c frontend/driver/texref.c frontend/memory/copy.h frontend/memory/copy.c frontend/memory/box.h frontend/memory/box.c frontend/stream/work.h frontend/stream/work.c frontend/module/registry.h frontend/runtime/device.c frontend/runtime/error.c frontend/runtime/execution.c \
	frontend/runtime/memory.c frontend/runtime/pool.c frontend/runtime/registration.c frontend/runtime/stream.c \
	frontend/driver/ctx.c frontend/driver/device.c frontend/driver/exec.c frontend/driver/init.c frontend/driver/memory.c frontend/driver/module.c \
	frontend/driver/stream.c frontend/driver/library.c frontend/module/jit.h frontend/module/jit.c frontend/runtime/library.c frontend/module/nvrtc.c frontend/module/compilers.h frontend/module/compilers.c frontend/module/nvjitlink.c frontend/driver/link.c frontend/module/link_image.h frontend/module/link_image.c \
	frontend/module/link_inputs.h frontend/module/link_inputs.c frontend/context/limits.h frontend/context/limits.c frontend/driver/coredump.c frontend/module/logs.c frontend/memory/pool.h frontend/memory/pool.c frontend/driver/pool.c \
	frontend/memory/advice.h frontend/memory/advice.c frontend/memory/batch.h frontend/memory/batch.c frontend/runtime/unified.c frontend/runtime/before13.h frontend/runtime/before13.c frontend/driver/unified.c \
	frontend/memory/vmm.h frontend/memory/vmm.c frontend/driver/vmm.c frontend/memory/ipc.h frontend/memory/ipc.c frontend/memory/peers.c frontend/runtime/ipc.c frontend/driver/ipc.c
