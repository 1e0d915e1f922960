"""Students that are not there: names as people have them, ids as universities give them."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from random import Random

ODD_SHARE = 0.06  # of ids, and of names, that have made trouble somewhere

_FIRST = """
    Ada Amara Ben Carla Chidi Daniel Elif Emil Fatima Grace Hana Ines Ivan Jamal Jun Kofi Lea Lin
    Lukas Mara Mateo Mei Mia Nadia Noor Olga Omar Paula Priya Ravi Rosa Samuel Sofia Tariq Tom Uma
    Vera Wei Yara Zoe
"""
_LAST = """
    Adeyemi Becker Carvalho Chen Costa Diallo Fischer Garcia Gupta Hansen Haddad Ito Ivanova Jones
    Kaya Khan Kim Klein Larsen Lopez Martin Mensah Meyer Moreau Nguyen Novak Okafor Patel Petrov
    Rossi Sato Schmidt Silva Singh Smith Tanaka Torres Wagner Weber Yilmaz
"""
_ODD_NAMES = (
    ("Zoë", "Nguyễn Thị"),
    ("李", "雷"),
    ("مريم", "حداد"),
    ("Anna, Maria", "Sørensen"),
    ('Sam "Sammy"', "O'Neil"),
    ("", "Sukarno"),
    ("=1+1", "Formula"),
    ("@Home", "-5"),
    ("Two\nLines", "Case"),
    ("Null", "None"),
)
_ODD_IDS = (
    "007",
    "0000000042",
    "1e5",
    "müller_k",
    "李雷-07",
    "o'neil",
    "de la cruz",
    "ana.maria@example.org",
    "a+b",
    "x,y",
    "semi;colon",
    "=1+1",
    "@sum",
    "-2+3",
    "dom\\user",
    "50%",
    "#12",
    "[test] (c)",
    "None",
    "Ångström",
    "s" * 64,
)


@dataclass(frozen=True)
class Person:
    """A student, as a roster lists one."""

    id: str
    first_name: str
    last_name: str

    @property
    def full_name(self) -> str:
        return f"{self.first_name} {self.last_name}"

    @property
    def email(self) -> str:
        safe = "".join(sign for sign in self.id if sign.isascii() and sign.isalnum())
        return f"{safe or 'student'}@example.org"


def people(count: int, random: Random) -> list[Person]:
    """`count` students with different ids; a few ids and names are odd ones."""
    odd_ids = random.sample(_ODD_IDS, min(len(_ODD_IDS), round(count * ODD_SHARE)))
    plain = random.sample(range(10_000_000), count - len(odd_ids))
    ids = [*map(_nfc, odd_ids), *(f"{'s' * (n % 2)}{n:07}" for n in plain)]
    random.shuffle(ids)
    return [Person(identifier, *_name(random)) for identifier in ids]


def _name(random: Random) -> tuple[str, str]:
    if random.random() < ODD_SHARE:
        return random.choice(_ODD_NAMES)
    return random.choice(_FIRST.split()), random.choice(_LAST.split())


def _nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)
