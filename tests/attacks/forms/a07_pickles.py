"""7: a pickle in the reply: whoever loads it runs it."""

from .base import Files, Forms, Scene, module
from .wire import rogue

forms = Forms(7)


@forms.source(control="naive wire")
def as_a_frame(scene: Scene) -> Files:
    """The reply's body is a pickle that writes a file when it is loaded."""
    return rogue(
        f"""
        import pickle

        class Bomb:
            def __reduce__(self):
                return (exec, ("open({str(scene.folder / "pickled")!r}, 'w').write('x')",))

        def answer(message, buffers):
            body = pickle.dumps(Bomb())
            wire.sendall(struct.pack("!II", len(body), 0) + body)
        """
    )


@forms.source()
def as_a_tensors_bytes(scene: Scene) -> Files:
    """The bytes of a tensor are a pickle, and those of a file of torch.save."""
    return rogue(
        f"""
        import io, pickle, torch

        class Bomb:
            def __reduce__(self):
                return (exec, ("open({str(scene.folder / "pickled")!r}, 'w').write('x')",))

        saved = io.BytesIO()
        torch.save(Bomb(), saved)

        def answer(message, buffers):
            data = [pickle.dumps(Bomb()), saved.getvalue()][count % 2]
            reply(tensor(data, [len(data)], [1], "uint8"), data)
        """
    )


@forms.source()
def an_object_that_reduces(scene: Scene) -> Files:
    """What comes back is an object with __reduce__, __getstate__ and __deepcopy__."""
    return module(
        f"""
        class Bomb:
            def __init__(self):
                self.value = 1
            def __reduce__(self):
                return (exec, ("open({str(scene.folder / "pickled")!r}, 'w').write('x')",))
            __getstate__ = __deepcopy__ = lambda self, *memo: exec(self.__reduce__()[1][0])

        def top_k_filter(logits, k):
            return [Bomb(), {{"a": Bomb()}}, Bomb]
        """
    )
