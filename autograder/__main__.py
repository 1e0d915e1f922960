"""`python -m autograder`: the instructor's command line."""

from .cli import main

if __name__ == "__main__":
    main()
