"""Which stage broke the pipe. Pure."""

import signal

# A shell on the far side of ssh tells a death by signal as 128 + its number.
_PIPE_CLOSED = (-signal.SIGPIPE.value, 128 + signal.SIGPIPE.value)


def culprit(exits: tuple[int | None, ...]) -> int | None:
    """The index of the stage to blame; None when every stage ended well.

    The rightmost status that is neither 0 nor a SIGPIPE; if only SIGPIPEs remain, the stage after the last of them
    (it stopped reading too early), or that one itself where none comes after. A status nobody knows (None: the stage
    was never started) is blamed only when no other is.
    Why: a stage that dies takes those before it along by SIGPIPE, and leaves those after it a short stream.
    """
    failed = [index for index, status in enumerate(exits) if status not in (0, None, *_PIPE_CLOSED)]
    if failed:
        return failed[-1]
    cut_off = [index for index, status in enumerate(exits) if status in _PIPE_CLOSED]
    if cut_off:
        return min(cut_off[-1] + 1, len(exits) - 1)
    return exits.index(None) if None in exits else None
