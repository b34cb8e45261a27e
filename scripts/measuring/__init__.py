"""Measures on the installed torch what torchlint's tables say about it."""
