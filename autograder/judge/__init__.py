"""The judge: grades a learner's functions in a sandbox, with the same checks as the notebooks."""
