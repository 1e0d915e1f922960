"""Hidden checks, a module a lesson: against the solutions, on inputs drawn from a secret seed."""

# grep for this where no hidden check may be: canary-b0e196b8dd2c4d9607baa00f
