"""The judge, attacked as a hostile student would who has read all of its source."""
