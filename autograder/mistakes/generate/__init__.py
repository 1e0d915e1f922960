"""Wrong ways to write generate and stream."""

from ...bank import Bank
from . import choice, context, endings, manners, streams

bank = Bank("generate")
for part in (endings, choice, context, manners, streams):
    bank.implementations |= part.bank.implementations
