"""Comparing stores byte by byte."""


def contents(folder):
    """Every file of a store with its bytes, hidden ones apart."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(files)
        if not path.name.startswith(".")
    }


def assert_same_store(one, other):
    first, second = contents(one), contents(other)
    assert list(first) == list(second)
    different = [name for name in first if first[name] != second[name]]
    assert different == []
