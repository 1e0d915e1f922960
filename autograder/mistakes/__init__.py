"""Wrong implementations that learners really write, a module a lesson, each with its hint."""
