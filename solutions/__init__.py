"""The eight lesson modules, whole. The stubs in `course_lib/` are cut from them."""
