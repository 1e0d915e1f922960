"""Right implementations of other shapes, a module a lesson: no check may refuse them."""
