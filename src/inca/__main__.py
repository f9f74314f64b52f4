"""`python -m inca` is `inca`."""

from inca.cli import main

if __name__ == "__main__":
    main()
