"""`python -m infinimem` is the `infinimem` command."""

import sys

from infinimem.cli import main

if __name__ == "__main__":
    sys.exit(main())
