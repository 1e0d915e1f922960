"""Grades as files that other programs read: CSV, Canvas, Moodle, JSON."""
