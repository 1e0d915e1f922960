"""JupyterHub for a class on one server: nbgrader's exchange, and zips that are uploaded.

    jupyterhub -f deploy/jupyterhub_config.py     as root, for it starts servers as other users

Learners fetch the class edition through nbgrader's exchange. They hand in there, or upload a zip
into `handed_in` in their home. Instructors start in the class's folder and have formgrader there.
INSTRUCTORS.md ("Deployment") tells what has to lie where.
"""

import os
import pwd
from pathlib import Path

COURSE = Path(os.environ.get("COURSE", "/srv/course"))  # with solutions: for instructors alone
CLASS = Path(os.environ.get("CLASS", "/srv/class"))  # likewise
HANDED_IN = Path(os.environ.get("HANDED_IN", "/srv/handed_in"))  # a folder a learner
LEARNERS = Path(os.environ.get("LEARNERS", "/srv/learners"))  # the environment of all others
COURSE_ID = os.environ.get("COURSE_ID", "decoding")
INSTRUCTORS = set(os.environ.get("INSTRUCTORS", "instructor").split(","))
GROUP = os.environ.get("LEARNERS_GROUP", "learners")  # of the server's accounts


def before_start(spawner):
    """Give instructors the course's environment in the class's folder, learners theirs at home."""
    name = spawner.user.name
    home = COURSE / ".venv" if name in INSTRUCTORS else LEARNERS / ".venv"
    if name in INSTRUCTORS:
        spawner.notebook_dir = str(CLASS)
    else:
        make_inbox(name)
    spawner.cmd = [str(home / "bin" / "jupyterhub-singleuser")]
    # nbgrader calls alembic and jupyter by their bare names
    path = os.pathsep.join([str(home / "bin"), os.environ.get("PATH", os.defpath)])
    spawner.environment = {**spawner.environment, "PATH": path}


def make_inbox(name):
    """A folder that its learner and the instructors alone can enter, and a way there from home."""
    account = pwd.getpwnam(name)
    inbox = HANDED_IN / name
    inbox.mkdir(exist_ok=True)  # takes its group, the instructors', from HANDED_IN
    os.chown(inbox, account.pw_uid, -1)
    inbox.chmod(0o2770)
    link = Path(account.pw_dir) / "handed_in"
    if not link.is_symlink() and not link.exists():
        link.symlink_to(inbox)


c = get_config()  # noqa: F821

c.JupyterHub.bind_url = "http://127.0.0.1:8000"  # a proxy with TLS stands in front
c.JupyterHub.authenticator_class = "pam"
c.Authenticator.allowed_users = INSTRUCTORS
c.LocalAuthenticator.allowed_groups = {GROUP}
# nbgrader looks for its courses among these groups' names
c.JupyterHub.load_groups = {
    f"formgrade-{COURSE_ID}": {"users": sorted(INSTRUCTORS)},
    f"nbgrader-{COURSE_ID}": {"users": []},
}
c.Spawner.default_url = "/lab"
c.Spawner.pre_spawn_hook = before_start
