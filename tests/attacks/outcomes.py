"""What became of a call with broken input: an answer, or a refusal in words; never a surprise."""

from transduce.errors import TransduceError


def refused(use, *arguments):
    """Return the message with which the call was refused; "" if it was not."""
    try:
        use(*arguments)
    except TransduceError as error:
        return str(error)
    return ""


def is_clear(message):
    """Whether it was accepted, or refused in the words that all refusals have."""
    return not message or "Expected " in message or "needs an extra" in message
