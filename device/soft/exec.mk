# the interpreter: exec.h
