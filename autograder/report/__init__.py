"""What people read of the grades: a page for each learner, a page for the instructor."""
