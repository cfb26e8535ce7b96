/* SPDX-License-Identifier: Apache-2.0
 *
 * hook_sync.h - waiting for the work of the program, without the library's
 *
 * in    streams that the program creates and destroys, its waits for a device
 * out   the same waits
 * owns  handles of the program's non-blocking streams
 *
 * Thread-safe.
 */
#ifndef UM_INJECT_HOOK_SYNC_H
#define UM_INJECT_HOOK_SYNC_H

/* The stream is about to be destroyed. `idle`: its work is known to be complete. */
void um_sync_ends(const void *stream, int idle);

/* Streams are gone with their context. */
void um_sync_reset(void);

#endif
