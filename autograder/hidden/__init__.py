"""Hidden checks, a module a lesson: against the solutions, on inputs drawn from a secret seed."""
