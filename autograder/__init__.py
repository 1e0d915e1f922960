"""What the instructor has: it cuts stubs and editions, builds the lessons, and grades."""

import sys

# half of the time that a command took to start went into this package, which jsonschema takes up
# where it finds it, to check addresses in other alphabets: no notebook's schema asks for that
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
