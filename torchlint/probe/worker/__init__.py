"""The half of ``torchlint probe`` that runs in the project's own interpreter.

It is started by path, needs torch alone, and imports nothing of torchlint outside this folder, so that a torchlint
installed elsewhere (pre-commit, pipx) can probe. ``specs`` is read by both halves and imports no torch.
"""
