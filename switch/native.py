"""The C runtime's functions, typed: a thin ctypes layer (every call releases the GIL)."""

from __future__ import annotations

import _ctypes
import ctypes
from ctypes import POINTER, c_char_p, c_int, c_int32, c_int64, c_uint, c_uint32, c_uint64, c_void_p
from functools import lru_cache

from switch.compile import runtime_library

_RUNTIME = c_void_p
_U64S = POINTER(c_uint64)

# name: (result, arguments)
_PROTOTYPES: dict[str, tuple[object, tuple[object, ...]]] = {
    "sw_new": (_RUNTIME, (c_int, c_int, c_int, c_int)),
    "sw_load": (c_int, (_RUNTIME, c_void_p, c_void_p, POINTER(c_void_p))),
    "sw_resume": (None, (_RUNTIME,)),
    "sw_start": (c_int, (_RUNTIME,)),
    "sw_stop": (None, (_RUNTIME,)),
    "sw_free": (c_void_p, (_RUNTIME,)),
    "sw_add_port": (c_int, (_RUNTIME, c_uint, c_char_p)),
    "sw_remove_port": (c_int, (_RUNTIME, c_uint)),
    "sw_port_up": (c_int, (_RUNTIME, c_uint)),
    "sw_port_counters": (c_int, (_RUNTIME, c_uint, _U64S)),
    "sw_port_rate": (c_int, (_RUNTIME, c_uint, c_uint64)),
    "sw_queue_limits": (c_int, (_RUNTIME, c_int64, c_int64, c_int, c_int)),
    "sw_queue_counters": (c_int, (_RUNTIME, c_uint, c_uint, _U64S)),
    "sw_priority_drops": (c_uint64, (_RUNTIME,)),
    "sw_events_fd": (c_int, (_RUNTIME,)),
    "sw_events_lost": (c_uint64, (_RUNTIME,)),
    "sw_next_event": (
        c_int64,
        (_RUNTIME, POINTER(c_uint32), POINTER(c_uint32), c_char_p, c_uint32),
    ),
    "sw_replicas": (c_int, (_RUNTIME, c_int, c_uint32, c_char_p, c_uint32, c_uint32, c_uint32)),
    "sw_inject": (c_int, (_RUNTIME, c_uint, c_char_p, c_uint32)),
    "sw_enable_digest": (c_int, (_RUNTIME, c_uint32, c_int)),
    "sw_forget": (None, (_RUNTIME, c_int, c_char_p, c_uint32)),
    "sw_counter": (c_int, (_RUNTIME, c_uint32, c_uint64, c_uint64, _U64S, _U64S)),
    "sw_meter": (c_int, (_RUNTIME, c_uint32, c_uint64, _U64S, _U64S)),
    "sw_register": (c_int, (_RUNTIME, c_uint32, c_uint64, c_char_p, c_char_p)),
    "sw_process": (c_int64, (_RUNTIME, c_uint, c_char_p, c_uint32, c_char_p, c_uint64)),
    "sw_insert": (
        c_int64,
        (_RUNTIME, c_uint32, c_char_p, c_uint32, c_int64, c_int, c_uint32, c_char_p, c_uint32),
    ),
    "sw_insert_many": (
        c_int,
        (
            _RUNTIME,
            c_uint32,
            c_uint32,
            c_char_p,
            POINTER(c_int64),
            POINTER(c_int32),
            POINTER(c_uint32),
            POINTER(c_uint32),
            POINTER(c_int64),
        ),
    ),
    "sw_modify": (c_int, (_RUNTIME, c_uint64, c_int, c_uint32, c_char_p, c_uint32)),
    "sw_delete": (c_int, (_RUNTIME, c_uint64)),
    "sw_find": (c_int64, (_RUNTIME, c_uint32, c_char_p, c_uint32, c_int64)),
    "sw_handles": (c_int64, (_RUNTIME, c_uint32, _U64S, c_uint32)),
    "sw_entry": (
        c_int,
        (
            _RUNTIME,
            c_uint64,
            c_char_p,
            POINTER(c_int64),
            _U64S,
            POINTER(c_int32),
            POINTER(c_uint32),
            c_char_p,
            POINTER(c_uint32),
        ),
    ),
    "sw_set_default": (c_int, (_RUNTIME, c_uint32, c_int, c_uint32, c_char_p, c_uint32)),
    "sw_default": (
        c_int,
        (_RUNTIME, c_uint32, POINTER(c_int32), POINTER(c_uint32), c_char_p, POINTER(c_uint32)),
    ),
    "sw_idle": (c_int64, (_RUNTIME, c_uint64)),
    "sw_direct_counter": (c_int, (_RUNTIME, c_uint64, _U64S, _U64S)),
    "sw_direct_meter": (c_int, (_RUNTIME, c_uint64, _U64S, _U64S)),
    "sw_add_member": (c_int, (_RUNTIME, c_uint32, c_uint32, c_uint32, c_char_p, c_uint32)),
    "sw_modify_member": (c_int, (_RUNTIME, c_uint32, c_uint32, c_uint32, c_char_p, c_uint32)),
    "sw_delete_member": (c_int, (_RUNTIME, c_uint32, c_uint32)),
    "sw_set_group": (
        c_int,
        (_RUNTIME, c_uint32, c_uint32, POINTER(c_uint32), POINTER(c_uint32), c_uint32),
    ),
    "sw_delete_group": (c_int, (_RUNTIME, c_uint32, c_uint32)),
    "sw_vset": (c_int, (_RUNTIME, c_uint32, c_char_p, c_uint32)),
}


@lru_cache(maxsize=2)
def runtime(sanitize: bool = False) -> ctypes.CDLL:
    """The runtime library; its symbols are global because generated programs link against them."""
    library = ctypes.CDLL(str(runtime_library(sanitize)), mode=ctypes.RTLD_GLOBAL)
    for name, (result, arguments) in _PROTOTYPES.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library


def open_program(path: str) -> tuple[int, int]:
    """(dlopen handle, address of the program's description)."""
    library = ctypes.CDLL(path)
    library.switch_program.restype = c_void_p
    address = library.switch_program()
    handle: int = library._handle
    return handle, address


def close_program(handle: int | None) -> None:
    """Unloads a program that no switch runs any more."""
    if handle:
        _ctypes.dlclose(handle)
