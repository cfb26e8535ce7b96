/* SPDX-License-Identifier: Apache-2.0
 *
 * umadvise.hpp - umadv_launch with a lambda
 *
 *     umadvise::launch(adv, stream, "conv1", {UMADV_READ(x), UMADV_READ(w), UMADV_WRITE(y)}, [=](cudaStream_t s) {
 *             conv1<<<grid, block, 0, s>>>(x, w, y);
 *     });
 *
 * The lambda captures by value: pointers, sizes, scalars. It is called once now, and a copy of it where the library
 * launches the op again. It returns nothing, or 0 and otherwise an error.
 */
#ifndef UMADVISE_HPP
#define UMADVISE_HPP

#include <umadvise.h>

#include <cstddef>
#include <initializer_list>
#include <type_traits>

namespace umadvise {

namespace detail {

/* Calls the lambda; one without a result succeeds. */
template <class Launch, class Stream>
auto call(Launch &launch, Stream stream) -> typename std::enable_if<std::is_void<decltype(launch(stream))>::value, int>::type
{
	launch(stream);
	return 0;
}

template <class Launch, class Stream>
auto call(Launch &launch, Stream stream) ->
	typename std::enable_if<!std::is_void<decltype(launch(stream))>::value, int>::type
{
	return static_cast<int>(launch(stream));
}

template <class Launch, class Stream> int relaunch(void *arg, void *stream)
{
	return call(*static_cast<Launch *>(arg), static_cast<Stream>(stream));
}

} // namespace detail

/* As umadv_launch. `stream` is a cudaStream_t, or a void pointer. */
template <class Stream, class Launch>
int launch(struct umadv *adv, Stream *stream, const char *name, std::initializer_list<umadv_use> uses, Launch launch)
{
	static_assert(std::is_trivially_copyable<Launch>::value,
		      "the lambda captures pointers and scalars by value: it is copied byte by byte");
	static_assert(alignof(Launch) <= alignof(std::max_align_t), "the copy is aligned as malloc does");
	return umadv_launch(adv, stream, name, uses.begin(), uses.size(), detail::relaunch<Launch, Stream *>, &launch,
			    sizeof launch);
}

} // namespace umadvise

#endif
