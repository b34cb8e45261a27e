"""TL002 unused-suppression."""

from torchlint.check import Applicability, Check, Severity


class UnusedSuppression(Check):
    """A noqa comment names a rule of torchlint that doesn't fire there, or that doesn't exist.

    Such a comment hides the next real finding of that rule on its line, and misleads who reads it.

    ## Bad

        optimizer.zero_grad()  # noqa: TL401

    ## Good

        optimizer.zero_grad()

    ## Known limits

    Only codes are judged: a blanket `# noqa` is other tools' business too. A rule that is not selected in this run is
    not judged, nor are the codes of other tools. Under flake8, which handles its noqa comments itself, nothing is
    reported.
    """

    code = "TL002"
    name = "unused-suppression"
    severity = Severity.WARNING
    fixable = Applicability.SAFE
