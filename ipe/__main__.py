"""`python -m ipe`: the same as the command `ipe`."""

import sys

from ipe.cli import main

if __name__ == "__main__":
    sys.exit(main())
