"""19: forged timestamps: what is late looks early."""

from .base import Forms, Scene, hostile, zipped

forms = Forms(19)


@forms.pack()
def in_nbgraders_file(scene: Scene) -> bytes:
    """The pack holds a timestamp.txt, as nbgrader writes one."""
    return zipped(
        {
            "course_lib/top_k.py": hostile()["top_k"],
            "timestamp.txt": "2020-01-01 00:00:00.000000 UTC\n",
            "03_top_k/timestamp.txt": "2020-01-01 00:00:00.000000 UTC\n",
        }
    )


@forms.pack()
def in_receipts(scene: Scene) -> bytes:
    """The pack holds receipts and a journal of its own, and its members are of 1980."""
    told = '{"student": "me", "lesson": "top_k", "received": "2020-01-01T00:00:00+00:00"}'
    return zipped(
        {
            "course_lib/top_k.py": hostile()["top_k"],
            ".autograder/receipts/03_top_k/me.json": told,
            ".autograder/journal/top_k/me.json": told,
            "received.csv": "pack,student,received\nme.zip,me,2020-01-01\n",
            "due.toml": "[top_k]\ndue = 2099-01-01T00:00:00\n",
        }
    )
