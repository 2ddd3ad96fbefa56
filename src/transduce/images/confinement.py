"""What a decoding process may do: read one file at a time, within limits, and start nothing.

A file is somebody else's, and decoders are large C libraries. Whatever a file makes of them, the
process has bounded memory and time, cannot run a program, and ends with the process that started
it. On Linux the kernel enforces this; elsewhere the limits that the system has.
"""

import contextlib
import ctypes
import errno
import os
import platform
import signal
import struct
import sys
from typing import Any

MOST_FILES = 256  # open at a time
SPARE_MEMORY = 1 << 30  # bytes beside the pixels: libraries, the file itself
BYTES_A_PIXEL = 24  # of a decoded image with its copies in other modes
SPARE_SECONDS = 5  # of CPU time, beyond the limit for a file

PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 1, 22, 38
SECCOMP_MODE_FILTER = 2
# From the kernel's headers: the architecture, and its numbers of the calls that are refused.
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
STARTING = {  # execve, execveat, fork, vfork, ptrace, process_vm_writev
    "x86_64": (59, 322, 57, 58, 101, 311),
    "aarch64": (221, 281, 117, 271),
}
CLONE = {"x86_64": 56, "aarch64": 220}
CLONE3 = 435
CLONE_THREAD = 0x10000


def confine(parent: int, most_pixels: int, most_bytes: int) -> None:
    """Give up what decoding does not need, for the rest of this process."""
    end_with_parent(parent)
    with contextlib.suppress(ImportError):  # Windows
        _limit(most_pixels, most_bytes)
    _start_nothing()


def end_with_parent(parent: int) -> None:
    """Let the kernel end this process when the thread that started it ends, however it ends."""
    if sys.platform == "linux":
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before we asked
            os._exit(1)


def allow_seconds(seconds: float) -> None:
    """Let the next file take so much CPU time; beyond it the kernel ends the process."""
    with contextlib.suppress(ImportError):
        import resource

        used = resource.getrusage(resource.RUSAGE_SELF)
        until = int(used.ru_utime + used.ru_stime + seconds) + SPARE_SECONDS
        _lower(resource.RLIMIT_CPU, until)


def _limit(most_pixels: int, most_bytes: int) -> None:
    import resource

    _lower(resource.RLIMIT_CORE, 0)  # no memory of somebody's photos on the disk
    _lower(resource.RLIMIT_NOFILE, MOST_FILES)
    room = SPARE_MEMORY + most_bytes + BYTES_A_PIXEL * most_pixels
    _lower(resource.RLIMIT_AS, _mapped() + room)


def _lower(kind: int, value: int) -> None:
    import resource

    _, hard = resource.getrlimit(kind)
    if hard == resource.RLIM_INFINITY or value <= hard:
        with contextlib.suppress(OSError, ValueError):  # a limit the system does not have
            resource.setrlimit(kind, (value, hard))


def _mapped() -> int:
    """Return the bytes of address space in use; libraries map much more than they touch."""
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - one read, at every start
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 1 << 33


def _start_nothing() -> None:
    """Refuse new programs and processes, in the kernel where it can and in Python anyway."""
    sys.addaudithook(_refuse_processes)
    machine = platform.machine()
    if sys.platform == "linux" and machine in ARCHITECTURES:
        program = _program(machine)
        code = ctypes.create_string_buffer(program, len(program))
        rules = struct.pack("HL", len(program) // 8, ctypes.addressof(code))
        if _prctl(PR_SET_NO_NEW_PRIVS, 1) == 0:
            # Where the kernel has no seccomp this fails, and Python's refusal is what is left.
            _prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.create_string_buffer(rules))


def _program(machine: str) -> bytes:
    """Return the filter in the kernel's own language (struct sock_filter: code, jt, jf, k)."""
    load, equal, at_least, has, answer = 0x20, 0x15, 0x35, 0x45, 0x06
    allowed, refused = 0x7FFF0000, 0x00050000 | errno.EPERM
    unknown = 0x00050000 | errno.ENOSYS  # then the C library takes the older call for threads
    starting = STARTING[machine]
    steps: list[tuple[int, int, int, int]] = [
        (load, 0, 0, 4),  # the architecture
        (equal, 1, 0, ARCHITECTURES[machine]),
        (answer, 0, 0, refused),
        (load, 0, 0, 0),  # the number of the call
        (at_least, len(starting) + 6, 0, 0x40000000),  # another table of numbers, on x86_64
        *((equal, len(starting) + 5 - index, 0, call) for index, call in enumerate(starting)),
        (equal, 0, 1, CLONE3),
        (answer, 0, 0, unknown),
        (equal, 0, 2, CLONE[machine]),
        (load, 0, 0, 16),  # its flags
        (has, 0, 1, CLONE_THREAD),
        (answer, 0, 0, allowed),
        (answer, 0, 0, refused),
    ]
    return b"".join(struct.pack("HBBI", *step) for step in steps)


def _refuse_processes(event: str, arguments: tuple[Any, ...]) -> None:
    if event in ("subprocess.Popen", "os.system", "os.exec", "os.fork", "os.posix_spawn"):
        raise PermissionError(errno.EPERM, "a decoding process starts nothing")


def _prctl(*arguments: Any) -> int:  # noqa: ANN401 - numbers and pointers
    words = (ctypes.c_ulong(word) if isinstance(word, int) else word for word in arguments)
    try:
        return int(ctypes.CDLL(None).prctl(*words, *[ctypes.c_ulong(0)] * (5 - len(arguments))))
    except (OSError, AttributeError):
        return -1
