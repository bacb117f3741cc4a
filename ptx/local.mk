# ptx: fatbin reader, PTX lexer, parser, IR, printer, validator, control flow. Includes base only.
noinst_LIBRARIES += ptx/libptx.a
ptx_libptx_a_SOURCES = ptx/ptx.h ptx/ir.h ptx/opcode.h ptx/modifier.h ptx/ptx_private.h \
	ptx/opcodes.def ptx/text/text.h ptx/analysis/cfg.h ptx/images/image.h ptx/text/op.c \
	ptx/text/lex.c ptx/text/scope.c ptx/text/mods.c ptx/text/expr.c ptx/text/init.c \
	ptx/text/decl.c ptx/text/body.c ptx/text/parse.c ptx/text/print.c ptx/text/equal.c \
	ptx/text/validate.c ptx/analysis/cfg.c ptx/images/fatbin.c ptx/images/cubin.h \
	ptx/images/cubin.c ptx/images/link.c ptx/images/device_runtime.h \
	ptx/images/device_runtime.c ptx/images/image.c ptx/passes/pass.h ptx/passes/edit.h \
	ptx/passes/edit.c ptx/passes/copies.c ptx/analysis/own.c ptx/analysis/shape.c \
	ptx/analysis/uniform.c ptx/analysis/wait.h ptx/analysis/wait.c ptx/analysis/wait_ends.c \
	ptx/passes/rewrite_check.c ptx/passes/rewrite.c ptx/passes/fence.h \
	ptx/passes/fence_check.c ptx/passes/fence_env.c ptx/passes/fence.c ptx/analysis/reach.h \
	ptx/analysis/reach.c ptx/passes/fuse.c ptx/passes/deal.c ptx/analysis/count.h \
	ptx/analysis/count.c ptx/passes/devlib.h ptx/passes/devlib_private.h ptx/passes/devlib.c \
	ptx/passes/devlib_text.c ptx/passes/texop.h ptx/passes/texop.c ptx/passes/texture.c \
	ptx/passes/sampler.h ptx/passes/sampler.inc
ptx_libptx_a_CFLAGS = $(AM_CFLAGS) $(LZ4_CFLAGS) $(ZSTD_CFLAGS)
EXTRA_DIST += ptx/README.md ptx/passes/sampler.cu tools/sampler.py
EXTRA_DIST += ptx/text/README.md ptx/images/README.md ptx/analysis/README.md ptx/passes/README.md
