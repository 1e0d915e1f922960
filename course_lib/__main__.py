"""`python -m course_lib`: the learner's command line."""

from .given.cli import main

if __name__ == "__main__":
    main()
