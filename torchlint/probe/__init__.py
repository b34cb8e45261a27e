"""The runtime half: it builds a model in a child process, runs it on a batch of two, and proves what reading can't.

``launcher`` and everything beside it runs in torchlint's own interpreter and knows no torch; ``worker`` runs in the
project's interpreter and knows nothing of torchlint. Nothing on the lint path imports this package.
"""
