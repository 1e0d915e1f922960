"""Makes what learners get: stubs from solutions, notebooks from sources, editions from both."""
