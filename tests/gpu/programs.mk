# SPDX-License-Identifier: Apache-2.0
#
# programs.mk - builds what runs on a GPU, with nvcc
#
#     make -f tests/gpu/programs.mk SRC=. OUT=DIR LIBUM='.../libumtools.a .../libum.a' [NVCC=nvcc] [ARCH=-arch=sm_90] all
#
# LIBUM: as configure and make leave them in .libs. Every program comes with the runtime linked statically and shared
# (PROGRAM-static, PROGRAM-shared). KINDS and PROGRAMS: which. STANDIN: the folder of the stand-in driver, whose static
# runtime is then linked in.

SRC ?= .
OUT ?= build/gpu
NVCC ?= nvcc
ARCH ?=
SANITIZE ?=
NVCCFLAGS ?= -O2
LIBUM ?=
STANDIN ?=
KINDS ?= static shared

libs = -ljansson -lz
inc = -I$(SRC)/lib -I$(SRC)/tools -I$(SRC) -I$(SRC)/include -I$(SRC)/tests -I$(SRC)/tests/gpu -I$(SRC)/examples
comma = ,
host = -Wall,-Wextra$(if $(SANITIZE),$(comma)$(SANITIZE))

tests = correct evict facts hazards moves same special speed
examples = cg stencil train
PROGRAMS ?= $(tests) $(examples)
headers = $(wildcard $(SRC)/tests/gpu/*.h $(SRC)/examples/*.h $(SRC)/include/*.h)

all: $(foreach k,$(KINDS),$(PROGRAMS:%=$(OUT)/%-$(k)))
.PHONY: all
.SECONDARY:

# --- programs --------------------------------------------------------------------------------------------------------

$(OUT)/%.o: $(SRC)/tests/gpu/%.cu $(headers)
	@mkdir -p $(@D)
	$(NVCC) -std=c++17 $(NVCCFLAGS) $(ARCH) $(inc) -D_GNU_SOURCE -Xcompiler $(host) -c -o $@ $<

$(OUT)/%.o: $(SRC)/examples/%.cu $(headers)
	@mkdir -p $(@D)
	$(NVCC) -std=c++17 $(NVCCFLAGS) $(ARCH) $(inc) -Xcompiler $(host) -c -o $@ $<

# Names of functions in stacks.
$(OUT)/hazards-static $(OUT)/hazards-shared: export_names = -Xlinker -export-dynamic

link = $(NVCC) $(ARCH) $(if $(SANITIZE),-Xcompiler $(SANITIZE)) -o $@ $< $(LIBUM) $(libs) $(export_names) -lpthread -ldl

$(OUT)/%-static: $(OUT)/%.o $(LIBUM)
	$(link) -cudart static $(if $(STANDIN),-L$(STANDIN)/rt13/.libs)

$(OUT)/%-shared: $(OUT)/%.o $(LIBUM)
	$(link) -cudart shared
