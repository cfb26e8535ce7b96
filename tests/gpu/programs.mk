# SPDX-License-Identifier: Apache-2.0
#
# programs.mk - builds what runs on a GPU, with nvcc and a C compiler alone
#
#     make -f tests/gpu/programs.mk SRC=. OUT=DIR [NVCC=nvcc] [ARCH=-arch=sm_90] [LIBUM=.../libum.a] [DEPS=DIR] all
#
# LIBUM: libumtools.a and libum.a, as configure and make leave them in .libs; without it the sources are compiled here.
# DEPS: a folder with include/ and lib/ of jansson and zlib, where the system has none. Every program comes with the
# runtime linked statically and shared (PROGRAM-static, PROGRAM-shared). TOOL: `umadvise`; without it, it is
# built. KINDS and PROGRAMS: which. STANDIN: the
# folder of the stand-in driver, whose static runtime is then linked in.

SRC ?= .
OUT ?= build/gpu
NVCC ?= nvcc
CC ?= cc
ARCH ?=
SANITIZE ?=
CFLAGS ?= -O2
NVCCFLAGS ?= -O2
LIBUM ?=
DEPS ?=
TOOL ?=
STANDIN ?=
KINDS ?= static shared

deps_include = $(if $(DEPS),-I$(DEPS)/include)
libs = $(if $(DEPS),-L$(DEPS)/lib) -ljansson -lz
inc = -I$(SRC)/lib -I$(SRC)/tools -I$(SRC) -I$(SRC)/include -I$(SRC)/tests -I$(SRC)/tests/gpu -I$(SRC)/examples
comma = ,
host = -Wall,-Wextra$(if $(SANITIZE),$(comma)$(SANITIZE))

tests = correct facts hazards same special speed
examples = cg stencil train
PROGRAMS ?= $(tests) $(examples)
headers = $(wildcard $(SRC)/tests/gpu/*.h $(SRC)/examples/*.h $(SRC)/include/*.h)

all: $(foreach k,$(KINDS),$(PROGRAMS:%=$(OUT)/%-$(k))) $(if $(TOOL),,$(OUT)/umadvise)
.PHONY: all
.SECONDARY:

# --- the library and the tool, without configure ----------------------------------------------------------------------

find = $(shell cd $(SRC) && find $(1) -name '*.c' | LC_ALL=C sort)
objects = $(patsubst %.c,$(OUT)/obj/%.o,$(call find,$(1)))

$(OUT)/obj/%.o: $(SRC)/%.c
	@mkdir -p $(@D)
	$(CC) -std=c11 -D_GNU_SOURCE $(CFLAGS) -fPIC -pthread -I$(SRC)/lib -I$(SRC)/tools -I$(SRC) -I$(SRC)/include $(deps_include) -c -o $@ $<

ifeq ($(LIBUM),)
um = $(OUT)/libum.a

$(um): $(call objects,lib tools/probe)
	$(AR) rc $@ $^
else
um = $(LIBUM)
endif

$(OUT)/umadvise: $(call objects,tools) $(um)
	$(CC) -o $@ $^ $(libs) -lpthread -ldl -lm

# --- programs --------------------------------------------------------------------------------------------------------

$(OUT)/%.o: $(SRC)/tests/gpu/%.cu $(headers)
	@mkdir -p $(@D)
	$(NVCC) -std=c++17 $(NVCCFLAGS) $(ARCH) $(inc) -D_GNU_SOURCE -Xcompiler $(host) -c -o $@ $<

$(OUT)/%.o: $(SRC)/examples/%.cu $(headers)
	@mkdir -p $(@D)
	$(NVCC) -std=c++17 $(NVCCFLAGS) $(ARCH) $(inc) -Xcompiler $(host) -c -o $@ $<

# Names of functions in stacks.
$(OUT)/hazards-static $(OUT)/hazards-shared: export_names = -Xlinker -export-dynamic

link = $(NVCC) $(ARCH) $(if $(SANITIZE),-Xcompiler $(SANITIZE)) -o $@ $< $(um) $(libs) $(export_names) -lpthread -ldl

$(OUT)/%-static: $(OUT)/%.o $(um)
	$(link) -cudart static $(if $(STANDIN),-L$(STANDIN)/rt13/.libs)

$(OUT)/%-shared: $(OUT)/%.o $(um)
	$(link) -cudart shared
