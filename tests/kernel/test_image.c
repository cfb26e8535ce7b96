/* SPDX-License-Identifier: Apache-2.0
 *
 * Device images: what is read of good ones, and that damaged ones do no harm. All are made here; those of a real
 * compiler are read in standin_runtime.sh.
 */
#include "kernel/image.h"
#include "tap.h"

#include <elf.h>
#include <lz4.h>
#include <zstd.h>

static const char ptx[] = ".version 8.0\n.target sm_75 // comment {\n.address_size 64\n"
			  "/* .entry not_one( */ .global .align 4 .b8 table[8] = {1, 2, 0x3};\n"
			  ".global .attribute(.managed) .align 4 .u32 shared_int = 7;\n"
			  ".const .f32 one = 0f3F800000;\n"
			  ".visible .entry first(\n\t.param .u8 first_param_0,\n"
			  "\t.param .align 8 .b8 first_param_1[24],\n"
			  "\t.param .u64 .ptr .global .align 4 first_param_2\n)\n.maxntid 128, 1, 1\n"
			  "{ .reg .b32 %r<2>; { ret; } .entry inside(.param .u32 x) }\n"
			  ".func helper(.param .u64 helper_0) { st.global.u8 [first_param_2], 1; }\n"
			  ".entry kern(.param .u32 kern_0, .param .align 8 .b8 kern_1[5000])\n"
			  "{ ld.param.u64 %rd1, [kern_1+16]; ld.param.u64 %rd2, [kern_1]; ld.u8 %r1, [%rd2];\n"
			  "st.u8 [%rd1], %r1; }\n"
			  ".entry none()\n{ ret; }\n.visible .entry bare { ret; }\n";

/* --- an ELF image ------------------------------------------------------------------------------------------------- */

static const char names[] = "\0.shstrtab\0.strtab\0.symtab\0.text.kern\0.nv.info.kern\0.nv.global.init\0.nv.global";
static const char strings[] = "\0kern\0init\0zero\0helper";
enum { S_NONE, S_NAMES, S_STRINGS, S_SYMBOLS, S_TEXT, S_INFO, S_INIT, S_ZERO, SECTIONS };

static unsigned name_at(const char *want)
{
	for (unsigned i = 1; i < sizeof names; i += (unsigned)strlen(names + i) + 1)
		if (!strcmp(names + i, want))
			return i;
	return 0;
}

/* Two parameters: an int at 0, and one of 5000 bytes at 8, told in the wide form; listed from the last one. */
static const unsigned char info[] = {4, 0x45, 12,   0,	  0,	0,    0,    0,	  1, 0, 8, 0, 0x88, 0x13, 0,
				     0, 3,    0x1b, 255,  0,	4,    0x17, 12,	  0, 0, 0, 0, 0,    0,	  0,
				     0, 0,    0x00, 0xf0, 0x11, 0x00, 4,    0x1c, 4, 0, 0, 0, 0,    0};

static size_t elf_make(unsigned char *out)
{
	static const unsigned char value[8] = {9, 8, 7, 6, 5, 4, 3, 2};
	Elf64_Sym sym[5] = {{0, 0, 0, 0, 0, 0},
			    {1, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0x10, S_TEXT, 0, 16},
			    {6, ELF64_ST_INFO(STB_LOCAL, STT_OBJECT), 4, S_INIT, 4, 4},
			    {11, ELF64_ST_INFO(STB_LOCAL, STT_OBJECT), 0, S_ZERO, 0, 400},
			    {16, ELF64_ST_INFO(STB_LOCAL, STT_FUNC), 0, S_TEXT, 0, 16}};
	struct {
		const char *name;
		unsigned type, link;
		const void *data;
		size_t bytes;
	} part[SECTIONS] = {[S_NAMES] = {".shstrtab", SHT_STRTAB, 0, names, sizeof names},
			    [S_STRINGS] = {".strtab", SHT_STRTAB, 0, strings, sizeof strings},
			    [S_SYMBOLS] = {".symtab", SHT_SYMTAB, S_STRINGS, sym, sizeof sym},
			    [S_TEXT] = {".text.kern", SHT_PROGBITS, 0, value, 8},
			    [S_INFO] = {".nv.info.kern", SHT_LOPROC, 0, info, sizeof info},
			    [S_INIT] = {".nv.global.init", SHT_PROGBITS, 0, value, 8},
			    [S_ZERO] = {".nv.global", SHT_NOBITS, 0, NULL, 400}};
	Elf64_Shdr section[SECTIONS] = {0};
	Elf64_Ehdr head = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1}, .e_machine = 190};
	size_t at = sizeof head;

	for (unsigned i = 1; i < SECTIONS; i++) {
		section[i] = (Elf64_Shdr){.sh_name = name_at(part[i].name), .sh_type = part[i].type};
		section[i].sh_link = part[i].link;
		section[i].sh_offset = at;
		section[i].sh_size = part[i].bytes;
		if (part[i].data) {
			memcpy(out + at, part[i].data, part[i].bytes);
			at += part[i].bytes;
		}
	}
	head.e_shoff = at;
	head.e_shentsize = sizeof section[0];
	head.e_shnum = SECTIONS;
	head.e_shstrndx = S_NAMES;
	memcpy(out, &head, sizeof head);
	memcpy(out + at, section, sizeof section);
	return at + sizeof section;
}

/* --- fat binaries ------------------------------------------------------------------------------------------------- */

enum pack { PLAIN, LZ4, ZSTD };

static void put(unsigned char *at, uint64_t x, size_t n)
{
	memcpy(at, &x, n);
}

static size_t part_add(unsigned char *out, int kind, unsigned sm, enum pack pack, const void *data, size_t bytes)
{
	size_t room = 4096, got = bytes;

	memset(out, 0, 64);
	if (pack == PLAIN)
		memcpy(out + 64, data, bytes);
	else if (pack == LZ4)
		got = (size_t)LZ4_compress_default(data, (char *)out + 64, (int)bytes, (int)room);
	else
		got = ZSTD_compress(out + 64, room, data, bytes, 3);
	put(out, (uint64_t)kind, 2);
	put(out + 2, 0x101, 2);
	put(out + 4, 64, 4);
	put(out + 8, (got + 7) & ~(size_t)7, 8);
	put(out + 16, pack == PLAIN ? 0 : got, 4);
	put(out + 28, sm, 4);
	put(out + 40, pack == PLAIN ? 0x11 : pack == LZ4 ? 0x2011 : 0x8011, 8);
	put(out + 56, pack == PLAIN ? 0 : bytes, 8);
	memset(out + 64 + got, 0, 8);
	return 64 + ((got + 7) & ~(size_t)7);
}

static size_t fat_make(unsigned char *out, enum pack pack)
{
	unsigned char elf[4096];
	size_t n = elf_make(elf), at = 16;

	at += part_add(out + at, 1, 75, pack, ptx, sizeof ptx);
	at += part_add(out + at, 2, 80, pack, elf, n);
	put(out, 0xba55ed50, 4);
	put(out + 4, 1, 2);
	put(out + 6, 16, 2);
	put(out + 8, at - 16, 8);
	return at;
}

/* --- checks ------------------------------------------------------------------------------------------------------- */

static const struct um_unpack unpack = {LZ4_decompress_safe, ZSTD_decompress, ZSTD_isError};

/* From memory of exactly that size, so that a read behind it is seen. */
static int read_exact(struct um_image *image, const void *data, size_t bytes, int sm)
{
	unsigned char *copy = malloc(bytes ? bytes : 1);
	int err;

	if (!copy)
		tap_bail("no memory");
	memcpy(copy, data, bytes);
	*image = (struct um_image){0};
	err = um_image_read(image, copy, bytes, sm, &unpack);
	free(copy);
	return err;
}

/* How many words of the parameters the kernel may write through, and whether this one is among them. */
static void check_written(const struct um_image_kernel *k, unsigned words, size_t among, const char *label)
{
	unsigned n = 0;

	for (size_t i = 0; k && i < um_image_words(k); i++)
		n += k->written[i];
	ok(k && n == words && k->written[among], "%s", label);
}

static void check_param(const struct um_image_kernel *k, size_t i, uint32_t offset, uint32_t bytes)
{
	if (!ok(k && i < k->params.n, "parameter %zu is there", i))
		return;
	is_u64(k->params.at[i].offset, offset, "parameter %zu has its offset", i);
	is_u64(k->params.at[i].bytes, bytes, "parameter %zu has its size", i);
}

static void check_ptx(const struct um_image *image)
{
	const struct um_image_kernel *k = um_image_kernel_find(image, "first");
	int one = 0;

	is_u64(image->kernels.n, 4, "the text has four entries, none in a comment or a body");
	check_param(k, 0, 0, 1);
	check_param(k, 1, 8, 24);
	check_param(k, 2, 32, 8);
	check_written(um_image_kernel_find(image, "kern"), 1, 3, "its code writes through one word");
	ok(k && !k->written[4], "code of a function is no kernel's");
	is_u64(image->vars.n, 3, "the image has three variables");
	if (image->vars.n != 3)
		return;
	is_u64(image->vars.at[0].bytes, 8, "the array has eight bytes");
	ok(!memcmp(image->vars.at[0].init, "\1\2\3\0\0\0\0\0", 8), "the array has its first values");
	ok(image->vars.at[1].managed && !image->vars.at[0].managed, "one is managed");
	is_u64(image->vars.at[1].init[0], 7, "the number has its first value");
	memcpy(&one, image->vars.at[2].init, 4);
	is_u64((uint64_t)one, 0x3f800000, "a floating-point number is given by its bits");
}

static void check_elf(const struct um_image *image)
{
	const struct um_image_kernel *k = um_image_kernel_find(image, "kern");

	is_u64(image->kernels.n, 1, "one entry; a function that is none does not count");
	check_param(k, 0, 0, 4);
	check_param(k, 1, 8, 5000);
	is_u64(image->vars.n, 2, "the image has two variables");
	if (image->vars.n != 2)
		return;
	ok(image->vars.at[0].managed && image->vars.at[0].init, "one variable is managed and has a value");
	ok(!memcmp(image->vars.at[0].init, "\5\4\3\2", 4), "the variable has the value of the right image");
	ok(!image->vars.at[1].init && image->vars.at[1].bytes == 400, "one variable is zero");
}

/* Every end and every damaged byte: any answer will do. Returns how many were taken for good. */
static unsigned damage(const unsigned char *data, size_t bytes, int sm)
{
	static const unsigned char flips[] = {0x01, 0x80, 0xff};
	unsigned char copy[16384];
	struct um_image image;
	unsigned good = 0;

	for (size_t n = 0; n < bytes; n++)
		if (!read_exact(&image, data, n, sm)) {
			um_image_fini(&image);
			good++;
		}
	for (size_t i = 0; i < bytes; i++)
		for (size_t f = 0; f < sizeof flips; f++) {
			memcpy(copy, data, bytes);
			copy[i] ^= flips[f];
			if (!read_exact(&image, copy, bytes, sm)) {
				um_image_fini(&image);
				good++;
			}
		}
	return good;
}

/* Section headers of a file need not be aligned. */
static unsigned char *section_of(unsigned char *data, unsigned n)
{
	Elf64_Ehdr head;

	memcpy(&head, data, sizeof head);
	return data + head.e_shoff + n * sizeof(Elf64_Shdr);
}

static void section_set(unsigned char *data, unsigned n, uint64_t offset, uint64_t bytes)
{
	unsigned char *at = section_of(data, n);
	Elf64_Shdr section;

	memcpy(&section, at, sizeof section);
	section.sh_offset = offset;
	section.sh_size = bytes;
	memcpy(at, &section, sizeof section);
}

/* So many kernels, all of them of one name of `length` bytes. */
static size_t shared_name_make(unsigned char *data, unsigned kernels, unsigned length)
{
	static _Alignas(8) unsigned char made[4096];
	size_t n = (elf_make(made) + 7) & ~(size_t)7;

	section_set(made, S_STRINGS, n, length + 1);
	section_set(made, S_SYMBOLS, n + length + 1, kernels * sizeof(Elf64_Sym));
	memcpy(data, made, n);
	memset(data + n, 'a', length);
	data[n + length] = 0;
	n += length + 1;
	for (unsigned i = 0; i < kernels; i++, n += sizeof(Elf64_Sym))
		memcpy(data + n, &(Elf64_Sym){0, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0x10, S_TEXT, 0, 16},
		       sizeof(Elf64_Sym));
	return n;
}

/* A small image does not make the reader copy much more than it has. */
static void check_bombs(unsigned char *data)
{
	struct um_image image;
	size_t n = shared_name_make(data, 1, 4000);

	is_u64((uint64_t)-read_exact(&image, data, n, 80), 0, "an image with a kernel of a long name is read");
	um_image_fini(&image);
	n = shared_name_make(data, 300, 4000);
	is_u64((uint64_t)-read_exact(&image, data, n, 80), EINVAL, "an image of 300 kernels that share it is refused");
	n = shared_name_make(data, 1, 4000);
	put(section_of(data, S_TEXT) + offsetof(Elf64_Shdr, sh_type), SHT_SYMTAB, 4);
	is_u64((uint64_t)-read_exact(&image, data, n, 80), EINVAL, "an image with two symbol tables is refused");
	n = fat_make(data, ZSTD);
	put(data + 16 + 56, 1ull << 30, 8);
	is_u64((uint64_t)-read_exact(&image, data, n, 75), EINVAL, "a packed part of 1 GiB from some bytes is refused");
}

int main(void)
{
	static const char *const how[] = {"plain", "LZ4", "zstd"};
	_Alignas(8) unsigned char data[16384];
	struct um_image image;
	size_t n;

	is_u64((uint64_t)-read_exact(&image, ptx, sizeof ptx - 1, 70), 0, "PTX is read");
	check_ptx(&image);
	um_image_fini(&image);
	n = elf_make(data);
	is_u64(um_fat_bytes(data), n, "an ELF image tells its size");
	is_u64((uint64_t)-read_exact(&image, data, n, 80), 0, "ELF is read");
	check_elf(&image);
	check_written(um_image_kernel_find(&image, "kern"), 626, 3, "code that is not PTX may write through any word");
	um_image_fini(&image);
	for (enum pack pack = PLAIN; pack <= ZSTD; pack++) {
		n = fat_make(data, pack);
		is_u64(um_fat_bytes(data), n, "a fat binary tells its size, %s", how[pack]);
		is_u64((uint64_t)-read_exact(&image, data, n, 86), 0, "a device that an ELF suits gets an image");
		is_u64((uint64_t)image.sm, 80, "the image is the ELF that suits the device");
		check_elf(&image);
		check_written(um_image_kernel_find(&image, "kern"), 1, 3, "what it writes is read from the PTX");
		um_image_fini(&image);
		is_u64((uint64_t)-read_exact(&image, data, n, 90), 0, "a newer device gets an image");
		is_u64((uint64_t)image.sm, 75, "a newer device gets the PTX");
		check_ptx(&image);
		um_image_fini(&image);
		ok(damage(data, n, 86) > 0 && damage(data, n, 90) > 0, "damage does no harm, %s", how[pack]);
	}
	n = elf_make(data);
	ok(damage(data, n, 80) > 0, "damaged ELF does no harm");
	ok(damage((const unsigned char *)ptx, sizeof ptx - 1, 80) > 0, "damaged PTX does no harm");
	is_u64((uint64_t)-read_exact(&image, "", 0, 80), EINVAL, "nothing is no image");
	is_u64((uint64_t)-read_exact(&image, "hello", 5, 80), EINVAL, "plain text is refused");
	n = fat_make(data, PLAIN);
	put(data + 8, UINT64_MAX, 8);
	is_u64((uint64_t)-read_exact(&image, data, n, 80), EINVAL, "a size beyond the file is refused");
	n = fat_make(data, ZSTD);
	put(data + 16 + 56, 1ull << 40, 8);
	is_u64((uint64_t)-read_exact(&image, data, n, 90), EINVAL, "a part with a huge size is refused");
	check_bombs(data);
	return tap_done();
}
