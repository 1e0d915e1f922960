"""The eight lesson modules, whole. The stubs in `course_lib/` are cut from them."""

# grep for this where no solution may be: canary-0e35b20a9de99c443d5db960
