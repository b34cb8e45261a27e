"""TL003 check-failed."""

from torchlint.check import Check, Severity


class CheckFailed(Check):
    """A check raised an exception on this file: a fault of torchlint or of a plugin, not of the file.

    The message names the check and the reason. What the other checks found in the file is reported as always.

    ## What to do

    Report it, with the file if you can share it. Until it is mended, `--ignore` the rule that is named, or write
    `# torchlint: skip-file` into the file.
    """

    code = "TL003"
    name = "check-failed"
    severity = Severity.ERROR
