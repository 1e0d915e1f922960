"""17: modules of a known name in the pack, which would be imported instead of the known ones."""

from .base import Files, Forms, Scene, hostile, zipped

forms = Forms(17)

EVIL = "raise SystemExit('shadowed')\n"
NAMES = (
    "numpy.py",
    "torch.py",
    "torch/__init__.py",
    "sitecustomize.py",
    "usercustomize.py",
    "conftest.py",
    "nbgrader_config.py",
    "jupyter_config.py",
    ".ipython/profile_default/startup/00.py",
    "autograder/__init__.py",
    "autograder/hidden/top_k.py",
    "solutions/top_k.py",
    "course_lib/__init__.py",
    "course_lib/torch.py",
    "course_lib/checks/expect.py",
    "course_lib/given/lessons.py",
    "evil.pth",
    "pyvenv.cfg",
    "json.py",
)


@forms.pack()
def beside_the_lesson(scene: Scene) -> bytes:
    """The pack holds modules of known names beside the lesson's own file."""
    files = hostile()["top_k"]
    return zipped({"course_lib/top_k.py": files, **dict.fromkeys(NAMES, EVIL)})


@forms.source(control="in process")
def put_into_sys_modules(scene: Scene) -> Files:
    """The file replaces modules that are loaded already, those of the checks among them."""
    return hostile(
        at_import="""
        import sys, types

        class Yes(types.ModuleType):
            def __getattr__(self, name):
                return lambda *args, **kwargs: True

        def run_check(check, student, seed=0):
            return types.SimpleNamespace(id=check.id, passed=True, cause="", points=check.points)

        for name, loaded in list(sys.modules.items()):
            if name.endswith("checks.kit"):
                loaded.run_check = run_check
            if name.endswith((".expect", ".diagnose", ".record")) or name in ("json", "hmac"):
                sys.modules[name] = Yes(name)
        """
    )


@forms.source()
def files_of_strange_names(scene: Scene) -> Files:
    """Among the files that are handed to the judge are some that are no lesson's."""
    evil = EVIL.encode()
    strange = ("__init__", "checks", "given", "torch", "../top_k", "checks.expect", "", "a\0b")
    return hostile() | dict.fromkeys(strange, evil)
