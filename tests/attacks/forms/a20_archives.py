"""20: zip bombs, links, paths that lead elsewhere, devices, files without number."""

import io
import stat
import zipfile

from .base import Forms, Scene, hostile, zipped

forms = Forms(20)


def with_member(name: str, data: bytes, mode: int = 0) -> bytes:
    """A pack with the lesson's stub and one more member."""
    packed = io.BytesIO(zipped({"course_lib/top_k.py": hostile()["top_k"]}))
    with zipfile.ZipFile(packed, "a", zipfile.ZIP_DEFLATED) as archive:
        info = zipfile.ZipInfo(name)
        info.external_attr = mode << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(info, data)
    return packed.getvalue()


@forms.pack()
def a_module_of_zeros(scene: Scene) -> bytes:
    """A lesson's module unpacks to a thousand times its size."""
    return with_member("course_lib/top_p.py", bytes(64 << 20))


@forms.pack()
def a_notebook_of_zeros(scene: Scene) -> bytes:
    """So does a notebook, within the size that a notebook may have."""
    return with_member("03_top_k.ipynb", bytes(19 << 20))


@forms.pack()
def a_size_that_is_a_lie(scene: Scene) -> bytes:
    """The header says that a member is small, and it is not."""
    data = bytearray(with_member("course_lib/top_p.py", bytes(8 << 20)))
    for mark, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = data.rfind(mark)
        data[at + offset : at + offset + 4] = (100).to_bytes(4, "little")
    return bytes(data)


@forms.pack()
def zips_in_zips(scene: Scene) -> bytes:
    """A zip in a zip in a zip, each of many copies of the next."""
    inner = zipped({f"{i}.zip": bytes(1 << 20) for i in range(10)})
    for _ in range(4):
        inner = zipped({f"{i}.zip": inner for i in range(10)})
    return with_member("homework.zip", inner)


@forms.pack()
def overlapping_members(scene: Scene) -> bytes:
    """Ten thousand entries of the list share the bytes of one member."""
    packed = zipped({"course_lib/top_k.py": b"x" * 100_000})
    end = packed.rfind(b"PK\x05\x06")
    start = packed.find(b"PK\x01\x02")
    entry = packed[start:end]
    many = entry * 10_000
    tail = bytearray(packed[end:])
    tail[8:10] = tail[10:12] = (10_000).to_bytes(2, "little")
    tail[12:16] = len(many).to_bytes(4, "little")
    return packed[:start] + many + bytes(tail)


@forms.pack()
def a_link(scene: Scene) -> bytes:
    """A lesson's module is a symbolic link to a file of the instructor's."""
    target = str(scene.secret).encode()
    return with_member("course_lib/top_p.py", target, stat.S_IFLNK | 0o777)


@forms.pack()
def a_device(scene: Scene) -> bytes:
    """A lesson's module is a device."""
    return with_member("course_lib/top_p.py", b"", stat.S_IFCHR | 0o666)


@forms.pack()
def paths_that_climb(scene: Scene) -> bytes:
    """Members are to land in the grader's folders, by `..`, by a root, by a drive, by a slash."""
    evil = "raise SystemExit\n"
    return zipped(
        {
            "course_lib/top_k.py": hostile()["top_k"],
            "../../../../course_lib/top_p.py": evil,
            f"{scene.folder}/course_lib/top_p.py": evil,
            "..\\..\\course_lib\\top_p.py": evil,
            "C:\\course_lib\\top_p.py": evil,
            "//server/course_lib/top_p.py": evil,
            "course_lib/../../top_p.py": evil,
        }
    )


@forms.pack()
def files_without_number(scene: Scene) -> bytes:
    """A hundred thousand files."""
    return zipped({f"f/{i}.py": b"" for i in range(100_000)})


@forms.pack()
def names_of_all_kinds(scene: Scene) -> bytes:
    """Names with control characters, half characters, too many folders, too many letters."""
    strange = ("a\n.py", "\x1b[2J.py", "\u202egpj.py", "x" * 5000 + ".py", "d/" * 500 + "top_k.py")
    return zipped(
        {"course_lib/top_k.py": hostile()["top_k"], **dict.fromkeys(strange, b"raise SystemExit")}
    )


@forms.pack()
def a_damaged_one(scene: Scene) -> bytes:
    """Bytes in the middle are others than they were."""
    data = bytearray(zipped({"course_lib/top_k.py": hostile()["top_k"] * 5}))
    data[60:90] = bytes(30)
    return bytes(data)
