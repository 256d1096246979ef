"""`python -m nexmark.cli` is the command `nexmark`."""

import sys

from nexmark.cli.app import main

if __name__ == "__main__":
    sys.exit(main())
