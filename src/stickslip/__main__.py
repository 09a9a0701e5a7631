"""The command `stickslip`, also `python -m stickslip`: where an extra is missing, one line says which."""

import sys

from .extras import MissingExtra


def main() -> None:
    try:
        from .cli import app

        app()
    except MissingExtra as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
