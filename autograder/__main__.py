"""`python -m autograder`: the instructor's command line."""

if __name__ == "__main__":
    # each worker imports this module too, and has no use for a command line
    from .cli import main

    main()
