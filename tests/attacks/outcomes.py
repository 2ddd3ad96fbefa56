"""What became of a call with broken input: an answer, or a refusal in words; never a surprise."""

from transduce.cli.refusals import refusal
from transduce.errors import TransduceError


def refused(use, *arguments):
    """Return the message with which the command line refuses the call; "" if it does not."""
    try:
        use(*arguments)
    except TransduceError as error:
        return str(error)
    except OSError as error:  # of the operating system, such as a path that is too long
        return refusal(error)
    return ""


def is_clear(message):
    """Whether it was accepted, or refused in the words that all refusals have."""
    return not message or "Expected " in message or "needs an extra" in message
