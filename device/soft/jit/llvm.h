/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/jit/llvm.h - LLVM's C interface, opened at run time.
 *
 * libLLVM is large and need not be installed, so nothing is linked with it: the functions that the
 * compiler needs are looked up by name when the first kernel is to be compiled. They are the same
 * in the versions that are tried (llvm.c). The types and prototypes below are those of LLVM's
 * manual.
 * Threads: any, once ws_llvm_open() has returned. */
#ifndef WS_DEVICE_SOFT_JIT_LLVM_H
#define WS_DEVICE_SOFT_JIT_LLVM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct llvm_opaque_context *llvm_context;
typedef struct llvm_opaque_module *llvm_module;
typedef struct llvm_opaque_builder *llvm_builder;
typedef struct llvm_opaque_type *llvm_type;
typedef struct llvm_opaque_value *llvm_value;
typedef struct llvm_opaque_block *llvm_block;
typedef struct llvm_opaque_machine *llvm_machine;
typedef struct llvm_opaque_target *llvm_target;
typedef struct llvm_opaque_layout *llvm_layout;
typedef struct llvm_opaque_buffer *llvm_buffer;
typedef struct llvm_opaque_attribute *llvm_attribute;
typedef struct llvm_opaque_options *llvm_options;
typedef struct llvm_opaque_error *llvm_error;
typedef int llvm_bool;

/* LLVMIntPredicate and LLVMRealPredicate */
enum {
    LLVM_EQ = 32,
    LLVM_NE,
    LLVM_UGT,
    LLVM_UGE,
    LLVM_ULT,
    LLVM_ULE,
    LLVM_SGT,
    LLVM_SGE,
    LLVM_SLT,
    LLVM_SLE,
    LLVM_OEQ = 1,
    LLVM_OLT = 4,
    LLVM_OLE = 5,
    LLVM_ONE = 6,
    LLVM_ORD = 7,
    LLVM_UNO = 8,
};
/* LLVMAtomicRMWBinOp */
enum {
    LLVM_RMW_ADD = 1,
    LLVM_RMW_AND = 3,
    LLVM_RMW_OR = 5,
    LLVM_RMW_MAX = 7,
    LLVM_RMW_MIN,
    LLVM_RMW_UMAX,
    LLVM_RMW_UMIN,
};
/* LLVMCodeGenOptLevel, LLVMRelocMode, LLVMCodeModel and LLVMCodeGenFileType. Code of this model may
 * lie anywhere, far from what it calls. */
enum {
    LLVM_OPTIMIZE_DEFAULT = 2,
    LLVM_RELOC_STATIC = 1,
    LLVM_CODE_MODEL_JIT = 1,
    LLVM_OBJECT_FILE = 1
};

/* X(what it returns, its name without LLVM, what it takes) */
#define WS_LLVM_BINARY(X, name)                                                                    \
    X(llvm_value, name, (llvm_builder b, llvm_value x, llvm_value y, const char *label))
#define WS_LLVM_CAST(X, name)                                                                      \
    X(llvm_value, name, (llvm_builder b, llvm_value x, llvm_type to, const char *label))
#define WS_LLVM_FUNCTIONS(X)                                                                       \
    X(llvm_context, ContextCreate, (void))                                                         \
    X(void, ContextDispose, (llvm_context c))                                                      \
    X(llvm_module, ModuleCreateWithNameInContext, (const char *name, llvm_context c))              \
    X(void, DisposeModule, (llvm_module m))                                                        \
    X(char *, PrintModuleToString, (llvm_module m))                                                \
    X(llvm_bool, VerifyModule, (llvm_module m, int action, char **text))                           \
    X(void, DisposeMessage, (char *text))                                                          \
    X(llvm_builder, CreateBuilderInContext, (llvm_context c))                                      \
    X(void, DisposeBuilder, (llvm_builder b))                                                      \
    X(llvm_type, IntTypeInContext, (llvm_context c, unsigned bits))                                \
    X(llvm_type, FloatTypeInContext, (llvm_context c))                                             \
    X(llvm_type, DoubleTypeInContext, (llvm_context c))                                            \
    X(llvm_type, VoidTypeInContext, (llvm_context c))                                              \
    X(llvm_type, VectorType, (llvm_type t, unsigned n))                                            \
    X(llvm_type, PointerType, (llvm_type t, unsigned space))                                       \
    X(llvm_type, FunctionType, (llvm_type ret, llvm_type * params, unsigned n, llvm_bool more))    \
    X(llvm_type, TypeOf, (llvm_value v))                                                           \
    X(llvm_value, AddFunction, (llvm_module m, const char *name, llvm_type t))                     \
    X(llvm_value, GetNamedFunction, (llvm_module m, const char *name))                             \
    X(llvm_value, GetParam, (llvm_value f, unsigned k))                                            \
    X(llvm_block, AppendBasicBlockInContext, (llvm_context c, llvm_value f, const char *name))     \
    X(void, PositionBuilderAtEnd, (llvm_builder b, llvm_block at))                                 \
    X(llvm_block, GetInsertBlock, (llvm_builder b))                                                \
    X(llvm_block, GetFirstBasicBlock, (llvm_value f))                                              \
    X(llvm_block, GetNextBasicBlock, (llvm_block b))                                               \
    X(llvm_value, GetFirstInstruction, (llvm_block b))                                             \
    X(llvm_value, GetNextInstruction, (llvm_value v))                                              \
    X(void, InstructionEraseFromParent, (llvm_value v))                                            \
    X(llvm_value, GetBasicBlockTerminator, (llvm_block b))                                         \
    X(llvm_value, ConstInt, (llvm_type t, unsigned long long v, llvm_bool is_signed))              \
    X(llvm_value, ConstVector, (llvm_value * v, unsigned n))                                       \
    X(llvm_value, ConstNull, (llvm_type t))                                                        \
    X(llvm_value, GetUndef, (llvm_type t))                                                         \
    X(llvm_value, BuildAlloca, (llvm_builder b, llvm_type t, const char *label))                   \
    X(llvm_value, BuildLoad2, (llvm_builder b, llvm_type t, llvm_value p, const char *label))      \
    X(llvm_value, BuildStore, (llvm_builder b, llvm_value v, llvm_value p))                        \
    X(void, SetAlignment, (llvm_value v, unsigned bytes))                                          \
    X(llvm_value, BuildSelect,                                                                     \
      (llvm_builder b, llvm_value c, llvm_value x, llvm_value y, const char *label))               \
    X(llvm_value, BuildICmp, (llvm_builder b, int how, llvm_value x, llvm_value y, const char *l)) \
    X(llvm_value, BuildFCmp, (llvm_builder b, int how, llvm_value x, llvm_value y, const char *l)) \
    X(llvm_value, BuildNot, (llvm_builder b, llvm_value x, const char *label))                     \
    X(llvm_value, BuildInsertElement,                                                              \
      (llvm_builder b, llvm_value v, llvm_value x, llvm_value k, const char *label))               \
    X(llvm_value, BuildShuffleVector,                                                              \
      (llvm_builder b, llvm_value x, llvm_value y, llvm_value k, const char *label))               \
    X(llvm_value, BuildCall2,                                                                      \
      (llvm_builder b, llvm_type t, llvm_value f, llvm_value * args, unsigned n, const char *l))   \
    X(llvm_value, BuildBr, (llvm_builder b, llvm_block to))                                        \
    X(llvm_value, BuildCondBr, (llvm_builder b, llvm_value c, llvm_block yes, llvm_block no))      \
    X(llvm_value, BuildSwitch, (llvm_builder b, llvm_value v, llvm_block other, unsigned n))       \
    X(void, AddCase, (llvm_value s, llvm_value on, llvm_block to))                                 \
    X(llvm_value, BuildRet, (llvm_builder b, llvm_value v))                                        \
    X(llvm_value, BuildAtomicRMW,                                                                  \
      (llvm_builder b, int op, llvm_value p, llvm_value v, int order, llvm_bool one_thread))       \
    X(llvm_value, BuildUnreachable, (llvm_builder b))                                              \
    X(llvm_attribute, CreateStringAttribute,                                                       \
      (llvm_context c, const char *k, unsigned kn, const char *v, unsigned vn))                    \
    X(void, AddAttributeAtIndex, (llvm_value f, unsigned at, llvm_attribute a))                    \
    X(void, InstallFatalErrorHandler, (void (*failed)(const char *why)))                           \
    X(void, InitializeX86TargetInfo, (void))                                                       \
    X(void, InitializeX86Target, (void))                                                           \
    X(void, InitializeX86TargetMC, (void))                                                         \
    X(void, InitializeX86AsmPrinter, (void))                                                       \
    X(llvm_value, AddGlobal, (llvm_module m, llvm_type t, const char *name))                       \
    X(llvm_value, GetNamedGlobal, (llvm_module m, const char *name))                               \
    X(llvm_value, ConstPtrToInt, (llvm_value v, llvm_type to))                                     \
    X(llvm_bool, GetTargetFromTriple, (const char *triple, llvm_target *ret, char **text))         \
    X(llvm_machine, CreateTargetMachine,                                                           \
      (llvm_target t, const char *triple, const char *cpu, const char *features, int level,        \
       int reloc, int code_model))                                                                 \
    X(void, DisposeTargetMachine, (llvm_machine t))                                                \
    X(llvm_layout, CreateTargetDataLayout, (llvm_machine t))                                       \
    X(void, DisposeTargetData, (llvm_layout l))                                                    \
    X(void, SetModuleDataLayout, (llvm_module m, llvm_layout l))                                   \
    X(void, SetTarget, (llvm_module m, const char *triple))                                        \
    X(llvm_bool, TargetMachineEmitToMemoryBuffer,                                                  \
      (llvm_machine t, llvm_module m, int kind, char **text, llvm_buffer *ret))                    \
    X(llvm_buffer, WriteBitcodeToMemoryBuffer, (llvm_module m))                                    \
    X(const char *, GetBufferStart, (llvm_buffer b))                                               \
    X(size_t, GetBufferSize, (llvm_buffer b))                                                      \
    X(void, DisposeMemoryBuffer, (llvm_buffer b))                                                  \
    X(char *, GetHostCPUName, (void))                                                              \
    X(char *, GetHostCPUFeatures, (void))                                                          \
    X(llvm_error, RunPasses, (llvm_module m, const char *passes, llvm_machine t, llvm_options o))  \
    X(void, ConsumeError, (llvm_error e))                                                          \
    X(llvm_options, CreatePassBuilderOptions, (void))                                              \
    X(void, DisposePassBuilderOptions, (llvm_options o))                                           \
    WS_LLVM_BINARY(X, BuildAdd)                                                                    \
    WS_LLVM_BINARY(X, BuildSub)                                                                    \
    WS_LLVM_BINARY(X, BuildMul)                                                                    \
    WS_LLVM_BINARY(X, BuildAnd)                                                                    \
    WS_LLVM_BINARY(X, BuildOr)                                                                     \
    WS_LLVM_BINARY(X, BuildXor)                                                                    \
    WS_LLVM_BINARY(X, BuildShl)                                                                    \
    WS_LLVM_BINARY(X, BuildLShr)                                                                   \
    WS_LLVM_BINARY(X, BuildAShr)                                                                   \
    WS_LLVM_BINARY(X, BuildURem)                                                                   \
    WS_LLVM_BINARY(X, BuildUDiv)                                                                   \
    WS_LLVM_BINARY(X, BuildSDiv)                                                                   \
    WS_LLVM_BINARY(X, BuildFAdd)                                                                   \
    WS_LLVM_BINARY(X, BuildFSub)                                                                   \
    WS_LLVM_BINARY(X, BuildFMul)                                                                   \
    WS_LLVM_BINARY(X, BuildFDiv)                                                                   \
    WS_LLVM_BINARY(X, BuildExtractElement)                                                         \
    WS_LLVM_CAST(X, BuildIntToPtr)                                                                 \
    WS_LLVM_CAST(X, BuildPtrToInt)                                                                 \
    WS_LLVM_CAST(X, BuildBitCast)                                                                  \
    WS_LLVM_CAST(X, BuildZExt)                                                                     \
    WS_LLVM_CAST(X, BuildSExt)                                                                     \
    WS_LLVM_CAST(X, BuildTrunc)                                                                    \
    WS_LLVM_CAST(X, BuildSIToFP)                                                                   \
    WS_LLVM_CAST(X, BuildUIToFP)                                                                   \
    WS_LLVM_CAST(X, BuildFPToSI)                                                                   \
    WS_LLVM_CAST(X, BuildFPToUI)                                                                   \
    WS_LLVM_CAST(X, BuildFPExt)                                                                    \
    WS_LLVM_CAST(X, BuildFPTrunc)

struct ws_llvm {
#define X(ret, name, params) ret(*name) params;
    WS_LLVM_FUNCTIONS(X)
#undef X
};
/* Valid after ws_llvm_open() has returned true. */
extern struct ws_llvm ws_llvm;
/* Opens the library, once in the life of the process. Return: false: it is not installed, or lacks
 * something. */
bool ws_llvm_open(void);
/* Whether it was to be opened, and is not there. It is opened when the first kernel is hot. */
bool ws_llvm_is_missing(void);
/* What the library's linker wrote into it: no two builds have the same. Return: its bytes; 0: there
 * is none. */
size_t ws_llvm_build_id(const uint8_t **ret);

#endif
