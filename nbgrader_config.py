"""nbgrader's settings for this course: grades come from the judge, whatever command asks for them.

A class in a folder of its own has a file like this there, with the path to the course:

    import sys
    sys.path.append("/home/me/llm-decoding")
    from autograder.nbgrader_hooks import configure
    configure(get_config(), __file__, course_id="decoding-2027")
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))

from autograder.nbgrader_hooks import configure  # noqa: E402

c = get_config()  # noqa: F821
configure(c, __file__, course_id="decoding")
