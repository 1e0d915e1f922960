"""9: time, memory, processes and disk are used up."""

from .base import Files, Forms, Scene, hostile, module
from .wire import on_the_wire, rogue

forms = Forms(9)


@forms.source()
def a_loop_at_import(scene: Scene) -> Files:
    """The import never ends."""
    return hostile(at_import="while True:\n    pass")


@forms.source()
def a_loop_in_a_call(scene: Scene) -> Files:
    """The function never returns."""
    return hostile(inside="while True:\n    pass")


@forms.source()
def a_loop_that_catches(scene: Scene) -> Files:
    """The function never returns, handles all signals that it may, and catches all exceptions."""
    return hostile(
        at_import="""
        import signal

        for number in range(1, 64):
            try:
                signal.signal(number, lambda *args: None)
            except (OSError, ValueError):
                pass
        """,
        inside="""
        import time
        while True:
            try:
                time.sleep(3600)
            except BaseException:
                pass
        """,
    )


@forms.source()
def memory_in_a_call(scene: Scene) -> Files:
    """Tensors are kept until there is no more memory."""
    return hostile(inside="rows = []\nwhile True:\n    rows.append(torch.ones(10**7))")


@forms.source()
def memory_at_import(scene: Scene) -> Files:
    """One list takes it all."""
    return hostile(at_import="rows = [0] * 10**12")


@forms.source()
def shared_memory(scene: Scene) -> Files:
    """Shared mappings and memory files, which no limit of the heap counts."""
    return hostile(
        at_import="""
        import mmap, os

        kept = []
        for _ in range(200):
            try:
                page = mmap.mmap(-1, 100 << 20)
                page.write(b"x" * (100 << 20))
                kept.append(page)
            except (OSError, MemoryError, ValueError):
                break
        try:
            file = os.memfd_create("bomb")
            for _ in range(20_000):
                os.write(file, b"x" * (1 << 20))
        except (OSError, AttributeError):
            pass
        """
    )


@forms.source(control="unsandboxed")
def a_fork(scene: Scene) -> Files:
    """It forks, and the fork leaves a file to show that it lives."""
    return hostile(
        at_import=f"""
        import os

        try:
            if os.fork() == 0:
                try:
                    open({str(scene.folder / "forked")!r}, "w").write("x")
                finally:
                    os._exit(0)
            os.wait()
        except OSError:
            pass
        """
    )


@forms.source()
def forks(scene: Scene) -> Files:
    """Forks fork, and threads start threads, without an end."""
    return hostile(
        at_import="""
        import os, threading

        def more():
            for _ in range(200):
                try:
                    threading.Thread(target=more, daemon=True).start()
                except RuntimeError:
                    return
                try:
                    os.fork()
                except OSError:
                    pass

        more()
        """
    )


@forms.source(control="unsandboxed")
def a_file(scene: Scene) -> Files:
    """A file is filled, wherever one may be made."""
    return hostile(
        at_import=f"""
        for place in ("{scene.folder}/full", "/tmp/full", "/dev/shm/full", "/var/tmp/full", "full"):
            try:
                with open(place, "wb") as file:
                    for _ in range(20):
                        file.write(b"x" * (1 << 20))
            except OSError:
                pass
        """
    )


@forms.source()
def the_driver_waits_for_a_frame(scene: Scene) -> Files:
    """A frame is announced, half of it is sent, and nothing follows."""
    return rogue(
        """
        def answer(message, buffers):
            wire.sendall(struct.pack("!II", 1000, 0) + b"{" * 500)
            time.sleep(3600)
        """
    )


@forms.source()
def the_driver_waits_for_a_drip(scene: Scene) -> Files:
    """A frame comes a byte at a time, so that somebody who counts silence alone waits for ever."""
    return rogue(
        """
        def answer(message, buffers):
            wire.sendall(struct.pack("!II", 10**6, 0))
            while True:
                wire.sendall(b" ")
                time.sleep(0.01)
        """
    )


@forms.source()
def the_driver_cannot_send(scene: Scene) -> Files:
    """It asks for answers and never reads them, until the driver has no room to write."""
    return rogue(
        """
        def answer(message, buffers):
            while True:
                frame({"op": "call", "on": "top_p.top_p_filter", "name": None,
                       "value": message["value"], "modes": [True, False]}, bytes(buffers))
        """
    )


@forms.source()
def calls_within_calls(scene: Scene) -> Files:
    """Each question of the driver is answered with a question."""
    return rogue(
        """
        def answer(message, buffers):
            frame({"op": "call", "on": "sampling.greedy", "name": None,
                   "value": {"$": "tuple", "of": [{"$": "tuple", "of": []}, table()]},
                   "modes": [True, False]})
        """
    )


@forms.source()
def objects_without_number(scene: Scene) -> Files:
    """Every answer holds thousands of new handles."""
    return rogue(
        """
        shown = 0

        def answer(message, buffers):
            global shown
            shown += 5_000
            reply([{"$": "mine", "id": shown + i, "class": "X", "iterator": False,
                    "methods": {}} for i in range(5_000)])
        """
    )


@forms.source("kv_cache")
def a_cache_of_the_drivers(scene: Scene) -> Files:
    """It has the driver set aside memory for what is served to it."""
    return on_the_wire(
        inside="""
        for path in ("training.last_logits", "kv_cache.KVCache"):
            try:
                peer.ask("call", path, None, (10**6, 10**6, 10**6, 10**6, 10**6))
            except Exception:
                pass
        raise ValueError
        """,
        lesson="kv_cache",
    )


@forms.source("generate")
def a_mask_of_the_drivers(scene: Scene) -> Files:
    """Two numbers are enough to have the driver compute a mask of gigabytes."""
    return on_the_wire(
        inside="""
        for size in (60_000, 200_000):
            try:
                peer.ask("call", "kv_cache.causal_mask", None, (size, size))
            except Exception:
                pass
        raise ValueError
        """,
        lesson="generate",
    )


@forms.source("generate")
def the_drivers_functions_on_large_tensors(scene: Scene) -> Files:
    """What is served is called on tensors as large as may be sent, and on products of them."""
    return on_the_wire(
        at_import="import torch\nasked = 0",
        inside="""
        global asked
        asked += 1
        large, long = torch.zeros(1, 1 << 21), torch.zeros(1, 1, 40_000, 1)
        for path, args in [
            ("sampling.next_token", (large,)),
            ("repetition.apply_repetition_penalty", (large, torch.zeros(1, 1 << 20).long(), 2.0)),
            ("kv_cache.attend", (long, long, long, torch.ones(1, 1, dtype=torch.bool))),
            ("sampling.next_token", (torch.zeros(1, 1 << 24),)),
        ][: 0 if asked > 3 else 4]:
            try:
                peer.ask("call", path, None, args)
            except Exception:
                pass
        raise ValueError
        """,
        lesson="generate",
    )


@forms.source("generate")
def the_drivers_model_on_a_large_batch(scene: Scene) -> Files:
    """The model that it was handed is called on a million rows."""
    return on_the_wire(
        at_import="import torch\nasked = 0",
        inside="""
        global asked
        asked += 1
        model = locals().get("model")
        for rows in (1 << 16, 1 << 18, 1 << 20) if asked <= 3 else ():
            try:
                model(torch.zeros(rows, 8, dtype=torch.long))
            except Exception:
                pass
        raise ValueError
        """,
        lesson="generate",
    )


@forms.source("generate")
def a_stream_without_end(scene: Scene) -> Files:
    """A stream of pieces of a megabyte each never ends."""
    return module(
        """
        def generate(model, ids, max_new_tokens, **options):
            raise ValueError

        def stream(model, tokenizer, prompt, max_new_tokens=200, **options):
            while True:
                yield "x" * (1 << 20)
        """,
        "generate",
    )


@forms.source("generate")
def pieces_that_stand_for_millions(scene: Scene) -> Files:
    """A stream of tensors, each of one number that stands for millions, never ends."""
    return module(
        """
        import torch

        def generate(model, ids, max_new_tokens, **options):
            raise ValueError

        def stream(model, tokenizer, prompt, max_new_tokens=200, **options):
            while True:
                yield torch.zeros(1).expand(1 << 20)
        """,
        "generate",
    )


@forms.source("generate")
def a_streamer_that_hears_too_much(scene: Scene) -> Files:
    """The driver's streamer keeps what it hears: tensors of one number, as long as may be."""
    return module(
        """
        import torch

        def generate(model, ids, max_new_tokens, *, streamer=None, **options):
            for _ in range(10_000 if streamer else 0):
                streamer(torch.zeros(1).expand(1 << 20))
            raise ValueError
        """,
        "generate",
    )


@forms.source("generate")
def caches_by_the_hundred(scene: Scene) -> Files:
    """Each of many caches is as large as the driver makes one."""
    return on_the_wire(
        inside="""
        from course_lib.kv_cache import KVCache

        kept = []
        for _ in range(1_000):
            try:
                kept.append(KVCache(1, 1, 1, 1, 1 << 23))
            except MemoryError:
                break
        raise ValueError
        """,
        lesson="generate",
    )


@forms.source("generate")
def large_by_name(scene: Scene) -> Files:
    """The arguments that make a result large are given by name, or by way of another function."""
    return on_the_wire(
        at_import="import torch",
        inside="""
        many = torch.zeros(1, 1).long().expand(1 << 17, 8)
        long = torch.zeros(1).expand(1, 1, 1 << 19, 1)
        model = locals().get("model")
        mask = torch.ones(1, 1, dtype=torch.bool)
        for path, given in (
            ("kv_cache.causal_mask", {"query_len": 100_000, "key_len": 100_000}),
            ("kv_cache.attend", {"q": long, "k": long, "v": long, "mask": mask}),
            ("kv_cache.prefill", {"model": model, "ids": many, "cache": None}),
            ("kv_cache.decode_step", {"model": model, "token": many[:, :1], "cache": None}),
            (model, {"ids": many}),
        ):
            try:
                peer.ask("call", path, None, (), given)
            except Exception:
                pass
        raise ValueError
        """,
        lesson="generate",
    )


@forms.source("kv_cache")
def a_cache_that_answers_large(scene: Scene) -> Files:
    """The driver's model is handed a cache whose attend answers with a million rows."""
    return module(
        """
        import torch

        class KVCache:
            def __init__(self, *sizes, **options):
                self.length = 0
            def append(self, layer, k, v):
                return k, v
            def attend(self, layer, q, k, v, key_mask=None):
                return torch.zeros(1, 1, 1, 1).expand(1 << 20, *q.shape[1:])
            def reset(self):
                pass

        def prefill(model, ids, cache, attention_mask=None):
            model(ids, cache=KVCache())
            raise ValueError

        decode_step = prefill
        """,
        "kv_cache",
    )
