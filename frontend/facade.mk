# The façades: what CUDA's headers declare. FACADE_SOURCES lists every file.
FACADE_SOURCES = frontend/entrypoints.def frontend/entrypoints.c frontend/errors.def frontend/errors.h frontend/errors.c \
	frontend/facade.h frontend/cuda_types.h frontend/slab.h frontend/slab.c frontend/context.h frontend/context.c \
	frontend/module.h frontend/module.c frontend/managed.h frontend/managed.c frontend/attributes.h frontend/attributes.c frontend/hostmem.h frontend/hostmem.c \
	frontend/cuda_texture.h frontend/array.h frontend/array.c frontend/texel.c \
	frontend/texture.h frontend/texture.c frontend/texture_header.c frontend/rt_array.c frontend/rt_texture.c \
	frontend/drv_array.c frontend/drv_texture.c frontend/drv_texref.c frontend/copy.h frontend/copy.c frontend/box.h frontend/box.c frontend/work.h frontend/work.c frontend/registry.h frontend/rt_device.c frontend/rt_error.c frontend/rt_execution.c \
	frontend/rt_memory.c frontend/rt_pool.c frontend/rt_registration.c frontend/rt_stream.c \
	frontend/drv_ctx.c frontend/drv_device.c frontend/drv_exec.c frontend/drv_init.c frontend/drv_memory.c frontend/drv_module.c \
	frontend/drv_stream.c frontend/drv_library.c frontend/jit.h frontend/jit.c frontend/rt_library.c frontend/nvrtc.c frontend/compilers.h frontend/compilers.c frontend/nvjitlink.c frontend/drv_link.c frontend/link_image.h frontend/link_image.c \
	frontend/link_inputs.h frontend/link_inputs.c frontend/limits.h frontend/limits.c frontend/drv_coredump.c frontend/logs.c frontend/pool.h frontend/pool.c frontend/drv_pool.c \
	frontend/advice.h frontend/advice.c frontend/batch.h frontend/batch.c frontend/rt_unified.c frontend/rt_before13.h frontend/rt_before13.c frontend/drv_unified.c \
	frontend/vmm.h frontend/vmm.c frontend/drv_vmm.c frontend/ipc.h frontend/ipc.c frontend/peers.c frontend/rt_ipc.c frontend/drv_ipc.c
