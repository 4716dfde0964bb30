"""The `echelon` command: thin, no logic."""
