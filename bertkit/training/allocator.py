"""Memory that one step frees and the next takes again, without a way round by the system.

A step takes and frees hundreds of megabytes. glibc gives large blocks back to the system at once, and each page of the next
one is then brought in and filled with zeros anew: 27 000 page faults a step of tiny, an eighth to a fifth of its time.
"""

from __future__ import annotations

import ctypes
import platform

# glibc's malloc.h
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_NEVER = 2**31 - 1
_USUAL = 2**25  # bytes; what glibc comes to by itself, and the most that versions before 2.35 take
_LARGE = 2**27  # the logits of a chunk are 67 MB


def keep_freed_memory() -> bool:
    """From now on freed blocks stay with the process (but for the very largest, which go back as before).

    Returns:
        False where the C library is not glibc: nothing has changed.
    """
    return _set(_LARGE, _NEVER) or _set(_USUAL, _NEVER)


def free_as_usual() -> bool:
    """Undoes :func:`keep_freed_memory`: as glibc does by itself in a process that has freed large blocks."""
    done = _set(_USUAL, 2 * _USUAL)
    if done:
        ctypes.CDLL(None).malloc_trim(0)  # what was kept would else serve all that comes
    return done


def _set(largest: int, trim: int) -> bool:
    if platform.libc_ver()[0] != "glibc":
        return False
    library = ctypes.CDLL(None)
    return bool(library.mallopt(_MMAP_THRESHOLD, largest) and library.mallopt(_TRIM_THRESHOLD, trim))
