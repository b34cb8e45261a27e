"""TL001 syntax-error."""

from torchlint.check import Check, Severity


class SyntaxErrorInFile(Check):
    """The file can't be parsed, so that nothing else in it was checked.

    Reported where Python's own parser gives up: broken syntax, bytes that are no text in the file's encoding, a
    notebook whose JSON is damaged, nesting that is too deep for Python. The other files are checked all the same.

    ## Bad

        def forward(self, x:
            return self.fc(x)

    ## Good

        def forward(self, x):
            return self.fc(x)

    ## Known limits

    Files that never name torch are not parsed, and their errors are left to other tools. Syntax that is newer than the
    Python that torchlint runs on is reported as an error.
    """

    code = "TL001"
    name = "syntax-error"
    severity = Severity.ERROR
