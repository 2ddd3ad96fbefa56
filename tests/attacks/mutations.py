"""Bytes and values that nobody expects, made from a source of chance."""

ODD_TEXTS = ("", "\0", "=1+1", "a" * 200_000, "\ud800", "\u202e", "../..", "\n\r", "é" * 3000, "{}")


def mutated(data, chance):
    """Bytes changed, cut, repeated or inserted at some places."""
    data = bytearray(data)
    for _ in range(chance.randint(1, 10)):
        place = chance.randrange(len(data) or 1)
        match chance.randrange(5):
            case 0 if data:
                data[place] = chance.randrange(256)
            case 1 if data:
                data[place] ^= 1 << chance.randrange(8)
            case 2:
                data[place:place] = chance.randbytes(chance.randint(1, 40))
            case 3:
                del data[place : place + chance.randint(1, 60)]
            case _:
                data += data[place : place + 50]
    return bytes(data[: chance.randint(0, len(data))] if chance.random() < 0.2 else data)


def tree(chance, depth=0):
    """A random value of JSON."""
    match chance.randrange(8 if depth < 5 else 5):
        case 0:
            return chance.choice(ODD_TEXTS)
        case 1:
            return chance.choice([0, -1, 1.5, 10**30, True, None, float("inf"), float("nan")])
        case 2 | 3 | 4:
            return chance.choice(["cat", "dog", "fox", "no", "on", "1", "names", "a | b"])
        case 5 | 6:
            return [tree(chance, depth + 1) for _ in range(chance.randint(0, 5))]
        case _:
            keys = [chance.choice(["classes", "names", "0", "1", "cat", "x"]) for _ in range(4)]
            return {key: tree(chance, depth + 1) for key in keys}
