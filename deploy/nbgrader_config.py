"""For a server with JupyterHub: copy it to /etc/jupyter, where learners may read it.

It tells everybody's nbgrader which course there is and where things are exchanged. The class's own
nbgrader_config.py, which only instructors can read, comes on top.
"""

c = get_config()  # noqa: F821
c.CourseDirectory.course_id = "decoding"
c.Exchange.root = "/srv/nbgrader/exchange"  # mode 1777
c.ExchangeSubmit.add_random_string = True  # so that nobody guesses another's folder
