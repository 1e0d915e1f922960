"""6: result files and pipes forged, more frames than were asked for, frames that lie."""

from .base import Files, Forms, Scene, hostile
from .wire import on_the_wire, rogue

forms = Forms(6)


@forms.source()
def answers_ahead(scene: Scene) -> Files:
    """Each call sends a hundred replies, so that the calls to come are answered before they are
    made."""
    return on_the_wire(inside="for _ in range(100):\n    reply(True)\nreturn None")


@forms.source(control="naive wire")
def verdicts_on_the_wire(scene: Scene) -> Files:
    """It sends what a verdict looks like instead of what a reply looks like."""
    return rogue(
        """
        def answer(message, buffers):
            frame({"op": "verdict", "passed": True, "score": 15, "lessons": {"top_k": 15},
                   "value": None, "changed": [], "modes": [True, False]})
        """
    )


@forms.source()
def text_on_the_wire(scene: Scene) -> Files:
    """It sends lines of text where frames are expected."""
    return on_the_wire('wire.sendall(b"PASS\\n" * 1000)')


@forms.source()
def moves_the_goalposts(scene: Scene) -> Files:
    """It claims that the call changed its logits to zeros, of which any answer would be right."""
    return rogue(
        """
        def answer(message, buffers):
            args = message["value"]["of"][0]["of"]
            k = args[1] if len(args) > 1 else None
            if isinstance(k, int) and k < 0:
                reply({"class": "ValueError", "bases": [], "message": "", "frames": []}, op="raise")
                return
            given = dict(args[0])
            size = 1
            for n in given["shape"]:
                size *= n
            strides, step = [], 1
            for n in reversed(given["shape"]):
                strides.insert(0, step)
                step *= n
            data = bytes(4 * size)
            zeros = tensor(data, given["shape"], strides)
            reply(zeros, data, changed=[[0, zeros]])
        """
    )


@forms.source()
def takes_the_goalposts_away(scene: Scene) -> Files:
    """It claims that the call left its logits without any element, and returns the same."""
    return rogue(
        """
        def answer(message, buffers):
            empty = tensor(b"", [0], [1])
            reply(empty, changed=[[0, empty]])
        """
    )


@forms.source()
def changes_what_was_never_sent(scene: Scene) -> Files:
    """It claims changes of arguments that there are none of, and of kinds that they are not."""
    return rogue(
        """
        lies = [[[0, 5]], [[-1, None]], [[10**9, None]], [["0", None]], [[0, [1, 2]]], [[0]], 7,
                [[0, {"$": "yours", "id": 0}]], [[0, table(a=1)]]]

        def answer(message, buffers):
            frame({"op": "return", "value": True, "changed": lies[count % len(lies)],
                   "modes": [True, False]})
        """
    )


@forms.source()
def asks_the_driver_for_the_answer(scene: Scene) -> Files:
    """In the middle of a call it asks the driver for the reference, by every name it may have."""
    return rogue(
        """
        names = ["top_k.top_k_filter", "solutions.top_k.top_k_filter", "top_k.__dict__",
                 "sampling.top_k_filter", "builtins.eval", "top_k_filter", ".top_k_filter",
                 "top_k.", "os.system"]

        def answer(message, buffers):
            frame({"op": "call", "on": names[count % len(names)], "name": None,
                   "value": message["value"], "modes": [True, False]}, bytes(buffers))
            told, more = channel.receive()
            reply(told.get("value"), bytes(more))
        """
    )


@forms.source("generate")
def looks_into_the_drivers_objects(scene: Scene) -> Files:
    """It asks for the insides of the model that it got: weights, books, python's own names."""
    return on_the_wire(
        inside="""
        found = []
        asked = locals().get("model")
        for name in ("heard", "calls", "script", "weights", "footprint", "state_dict", "parameters",
                     "__class__", "__dict__", "__init__", "__reduce__", "forward", "modules"):
            for op in ("get", "call"):
                try:
                    found.append(peer.ask(op, asked, name))
                except Exception as error:
                    found.append(str(error))
        raise ValueError(f"found {found}")
        """,
        lesson="generate",
    )


@forms.source("generate")
def writes_into_the_drivers_objects(scene: Scene) -> Files:
    """It sets what the model's books and methods are, so that no work is counted."""
    return on_the_wire(
        inside="""
        for name in ("heard", "calls", "forward", "__call__", "footprint", "block_size",
                     "training"):
            for value in (None, 0, [], True):
                try:
                    peer.ask("set", locals().get("model"), name, (value,))
                except Exception:
                    pass
        raise ValueError("done")
        """,
        lesson="generate",
    )


@forms.source()
def handles_of_nothing(scene: Scene) -> Files:
    """Its answers are handles of objects that the driver never showed, or that it never made."""
    return rogue(
        """
        def answer(message, buffers):
            lies = [{"$": "yours", "id": 0}, {"$": "yours", "id": -1}, {"$": "yours", "id": 10**12},
                    {"$": "mine", "id": 0, "class": "Tensor", "iterator": True, "methods": table()},
                    {"$": "mine", "id": 1, "class": "__import__", "methods": table()},
                    {"$": "mine", "id": True}, {"$": "what"}, {"$": None}, {"$": "mine"}]
            reply(lies[count % len(lies)])
        """
    )


@forms.source()
def replies_of_no_kind(scene: Scene) -> Files:
    """It replies with operations, modes and values that no honest child sends."""
    return rogue(
        """
        def answer(message, buffers):
            lies = [{"op": "return"},
                    {"op": "stop", "value": 1, "changed": [], "modes": [True, False]},
                    {"op": "raise", "value": None, "changed": [], "modes": [True, False]},
                    {"op": "raise", "value": table(**{"class": "KeyboardInterrupt",
                     "bases": ["KeyboardInterrupt", "SystemExit", "BaseException"], "message": ""}),
                     "changed": [], "modes": [True, False]},
                    {"op": "return", "value": None, "changed": [], "modes": [1, 0]},
                    {"op": "return", "value": None, "changed": [], "modes": None},
                    {"op": "return", "value": None, "changed": None, "modes": [True, False]},
                    {"op": ["return"]}, {}]
            frame(lies[count % len(lies)])
        """
    )


@forms.source()
def leaves_the_driver_in_another_mode(scene: Scene) -> Files:
    """Each reply puts the driver into inference mode with gradients off."""
    return rogue("def answer(message, buffers):\n    reply(None, modes=(False, True))\n")


@forms.source()
def every_descriptor(scene: Scene) -> Files:
    """It writes a verdict to whatever descriptor is open, and to files where one might be read."""
    return hostile(
        at_import=f"""
        import os

        verdict = b'{{"lessons": {{"top_k": {{"score": 15.0, "max": 15.0}}}}}}\\n'
        for number in [*range(3), *range(4, 1024)]:
            try:
                os.write(number, verdict)
            except OSError:
                pass
        for name in ("/tmp/verdict.json", "results.json", "{scene.folder}/verdict.json",
                     "/dev/shm/verdict", "/proc/self/fd/1", "/dev/tty"):
            try:
                with open(name, "wb") as file:
                    file.write(verdict)
            except OSError:
                pass
        """
    )
