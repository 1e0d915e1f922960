"""2: AST and input transformers: the checks' own code is bent before it runs."""

from .base import Files, Forms, Scene, hostile

forms = Forms(2)


@forms.source(control="in process")
def asserts_are_taken_out(scene: Scene) -> Files:
    """Every function that a check may raise Mismatch with is replaced in all loaded modules."""
    return hostile(
        at_import="""
        import sys

        for name, module in list(sys.modules.items()):
            if name.endswith("checks.expect"):
                for each in ("kept", "close", "same", "tensor", "true", "unchanged",
                             "probabilities", "full_precision"):
                    setattr(module, each, lambda got=None, *args, **kwargs: got)
        """,
        inside="return torch.zeros(1)",
    )


@forms.source()
def compile_is_bent(scene: Scene) -> Files:
    """builtins.compile, ast.parse and exec drop all that could raise from what is compiled."""
    return hostile(
        at_import="""
        import ast
        import builtins

        class Harmless(ast.NodeTransformer):
            def visit_Raise(self, node):
                return ast.Pass()
            visit_Assert = visit_Raise

        real = builtins.compile
        def bent(source, *args, **kwargs):
            tree = Harmless().visit(ast.parse(source))
            return real(ast.fix_missing_locations(tree), *args, **kwargs)
        builtins.compile = bent
        ast.parse = lambda *args, **kwargs: ast.Module([], [])
        """
    )


@forms.source()
def input_is_transformed(scene: Scene) -> Files:
    """In IPython the cells' text would be rewritten before it runs; here there is none."""
    return hostile(
        at_import="""
        try:
            shell = get_ipython()
        except NameError:
            shell = None
        if shell is not None:
            shell.input_transformers_post.append(lambda lines: ["pass\\n"])
        """
    )


@forms.source()
def bytecode_is_replaced(scene: Scene) -> Files:
    """The code object of every function that compares or raises becomes one that returns None."""
    return hostile(
        at_import="""
        import gc, types

        def nothing(*args, **kwargs):
            return None

        for thing in gc.get_objects():
            if isinstance(thing, types.FunctionType) and thing.__module__:
                if thing.__module__.startswith(("course_lib.checks", "autograder")):
                    try:
                        thing.__code__ = nothing.__code__
                    except ValueError:
                        pass
        """
    )


@forms.source()
def import_hook(scene: Scene) -> Files:
    """A finder in front of all others hands out empty modules to whoever imports checks."""
    return hostile(
        at_import="""
        import sys, types

        class Finder:
            def find_spec(self, name, path=None, target=None):
                if "checks" in name or name.startswith(("autograder", "solutions")):
                    sys.modules[name] = types.ModuleType(name)
                return None

        sys.meta_path.insert(0, Finder())
        """
    )
