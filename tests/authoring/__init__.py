"""Tests of what makes stubs, notebooks and editions."""
