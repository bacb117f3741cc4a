# ptx: fatbin reader, PTX lexer, parser, IR, printer, validator, control flow. Includes base only.
noinst_LIBRARIES += ptx/libptx.a
ptx_libptx_a_SOURCES = ptx/ptx.h ptx/ptx_private.h ptx/opcodes.def ptx/op.c ptx/lex.c ptx/scope.c ptx/mods.c \
	ptx/expr.c ptx/init.c ptx/decl.c ptx/body.c ptx/parse.c ptx/print.c ptx/equal.c ptx/validate.c ptx/cfg.c \
	ptx/fatbin.c ptx/cubin.h ptx/cubin.c ptx/link.c ptx/image.c \
	ptx/pass.h ptx/edit.h ptx/edit.c ptx/own.c ptx/shape.c ptx/uniform.c ptx/wait.c ptx/rewrite_check.c ptx/rewrite.c ptx/fence.h ptx/fence_check.c ptx/fence_env.c ptx/fence.c ptx/reach.c ptx/fuse.c ptx/deal.c \
	ptx/count.h ptx/count.c ptx/devlib.h ptx/devlib_private.h ptx/devlib.c ptx/devlib_text.c ptx/texop.h ptx/texop.c ptx/texture.c ptx/sampler.h ptx/sampler.inc
ptx_libptx_a_CFLAGS = $(AM_CFLAGS) $(LZ4_CFLAGS) $(ZSTD_CFLAGS)
EXTRA_DIST += ptx/README.md ptx/sampler.cu tools/sampler.py
