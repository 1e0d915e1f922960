"""The gradient mode of this thread, kept the same on both sides of the wire."""

from __future__ import annotations

from typing import Any

import torch

from .wire import ProtocolError


class Modes:
    """Follows the other side: gradients on or off, inference mode on or off."""

    def __init__(self) -> None:
        self.entered: list[Any] = []  # inference modes that were entered here to follow

    def now(self) -> list[bool]:
        return [torch.is_grad_enabled(), torch.is_inference_mode_enabled()]

    def follow(self, wanted: Any) -> None:
        """Be in the mode that a message tells. Raises ProtocolError for what is no mode."""
        if not isinstance(wanted, list) or [type(x) for x in wanted] != [bool, bool]:
            raise ProtocolError("a message tells no mode")
        gradients, inference = wanted
        if inference != torch.is_inference_mode_enabled():
            if self.entered:
                self.entered.pop().__exit__(None, None, None)
            if inference != torch.is_inference_mode_enabled():
                mode = torch.inference_mode(inference)
                mode.__enter__()
                self.entered.append(mode)
        if gradients != torch.is_grad_enabled():
            torch.set_grad_enabled(gradients)

    def reset(self) -> None:
        """Back to ordinary code: no inference mode, gradients on."""
        while self.entered:
            self.entered.pop().__exit__(None, None, None)
        torch.set_grad_enabled(True)
