# SPDX-License-Identifier: Apache-2.0
"""What libumadvise knows of Python frameworks, for programs under `umadvise run`."""
import ctypes


def library():
    """The preloaded library; None: it is not there."""
    try:
        lib = ctypes.CDLL(None)
        return lib if lib.umadvise_run_wants else None
    except (OSError, AttributeError):
        return None
