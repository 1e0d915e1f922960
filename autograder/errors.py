"""The one kind of error that the command line shows as a line instead of a traceback."""

from __future__ import annotations


class CourseError(Exception):
    """Something that a person can mend: the message names it, and says how, in one line."""
