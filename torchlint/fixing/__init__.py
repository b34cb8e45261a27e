"""Edits onto files: apply, prove by linting again, write whole or not at all."""
