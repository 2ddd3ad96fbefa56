"""A refusal of the operating system as one message: what was expected, found, and what to do."""

import errno

LONGEST_PATH = 200  # letters of a path in a message

FULL = "make room, then repeat the command: what was finished is kept"
ADVICE = {
    errno.ENOSPC: ("room on the disk", FULL),
    errno.EDQUOT: ("room within the quota", FULL),
    errno.EROFS: ("a folder that can be written", "choose another --out"),
    errno.EACCES: ("permission", "change it, or choose another folder"),
    errno.EPERM: ("permission", "change it, or choose another folder"),
    errno.ENOENT: ("a file or folder that stays", "was it moved or removed? Repeat the command"),
    errno.ENOTDIR: ("a folder", "there is a file of that name; choose another folder"),
    errno.EISDIR: ("a file", "there is a folder of that name; choose another folder"),
    errno.EEXIST: ("a free name", "choose another folder"),
    errno.ENAMETOOLONG: ("a path that the system takes", "choose a shorter one"),
    errno.ELOOP: ("a link that leads somewhere", "remove the links that lead to each other"),
    errno.EMFILE: ("fewer open files", "raise the limit: ulimit -n 4096"),
    errno.ENFILE: ("fewer open files", "end other programs, or raise the system's limit"),
    errno.ENOMEM: ("more memory", "end other programs, or use --batch or fewer --workers"),
    errno.EAGAIN: ("more processes or memory", "end other programs, or use fewer --workers"),
    errno.EIO: ("a disk that reads and writes", "check it, then repeat the command"),
    errno.ESTALE: ("a network disk that stays", "mount it again, then repeat the command"),
    errno.EFBIG: ("smaller files", "raise the limit (ulimit -f), or choose another file system"),
    errno.ETXTBSY: ("a free file", "end the program that uses it"),
}
MEMORY = "Expected more memory, found none left; end other programs, or use a smaller --batch."
DEEP = "Expected a file that is not nested a thousand levels deep, found one; flatten it."


def refusal(error: OSError | MemoryError | RecursionError) -> str:
    """Return what the operating system refused, in one message."""
    if isinstance(error, MemoryError):
        return MEMORY
    if isinstance(error, RecursionError):
        return DEEP
    expected, do = ADVICE.get(error.errno or 0, ("the system to agree", "repeat the command"))
    found = error.strerror or str(error) or type(error).__name__
    name = error.filename2 if error.filename is None else error.filename
    where = f": {_short(str(name))}" if name not in (None, "") else ""
    return f"Expected {expected}, found {found[:1].lower()}{found[1:]}{where}; {do}."


def _short(path: str) -> str:
    shown = path.encode("utf-8", "backslashreplace").decode()
    if len(shown) <= LONGEST_PATH:
        return shown
    return f"{shown[:LONGEST_PATH]}... ({len(shown):,} letters)"
