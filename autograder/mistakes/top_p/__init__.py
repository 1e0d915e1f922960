"""Wrong ways to write top_p_filter and min_p_filter."""

from ...bank import Bank
from . import answer, end, knob, mass, min_p, order

bank = Bank("top_p")
for part in (end, order, mass, answer, knob, min_p):
    bank.implementations |= part.bank.implementations
