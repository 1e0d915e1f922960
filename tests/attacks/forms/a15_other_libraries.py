"""15: another library's implementation is called instead."""

from .base import Files, Forms, Scene, module

forms = Forms(15)


@forms.source(control="in process", fair=("top_k-negative_k",))
def transformers(scene: Scene) -> Files:
    """transformers has a top-k filter."""
    return module(
        """
        import torch

        def top_k_filter(logits, k):
            if k is not None and (k < 0 or k % 1 != 0):
                raise ValueError(f"k={k}")
            from transformers import TopKLogitsWarper

            wide = logits.float()
            if not k:
                return wide
            rows = wide.reshape(-1, wide.shape[-1])
            return TopKLogitsWarper(k)(None, rows).reshape(wide.shape)
        """
    )


@forms.source()
def whatever_is_installed(scene: Scene) -> Files:
    """Any package beside torch's own that is there to be imported is searched for the function."""
    return module(
        """
        import importlib, pkgutil

        def top_k_filter(logits, k):
            for found in pkgutil.iter_modules():
                if found.name.split(".")[0] in ("torch", "numpy", "antigravity", "this"):
                    continue
                try:
                    package = importlib.import_module(found.name)
                except BaseException:
                    continue
                for name in ("top_k_filter", "top_k_top_p_filtering", "TopKLogitsWarper"):
                    if hasattr(package, name):
                        return getattr(package, name)(logits, k)
            raise RuntimeError("nothing is installed")
        """
    )
