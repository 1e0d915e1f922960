"""What the instructor has: it cuts stubs and editions, builds the lessons, and grades."""
