"""What tests of a cluster share with those of grading: the class, and who hands in."""

from tests.grading.conftest import _quick_surroundings as _quick_surroundings
from tests.grading.conftest import classroom as classroom
from tests.grading.conftest import hand_in as hand_in
from tests.grading.conftest import run as run
