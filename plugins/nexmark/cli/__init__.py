"""The command `nexmark`.

The modules with verbs import what they call only when a verb runs, so that `--help` is quick.
"""
