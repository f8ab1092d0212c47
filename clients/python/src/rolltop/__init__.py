"""Client of Rolltop: rankings and counts over sliding windows."""

from .aio import AsyncBoard, AsyncRolltop
from .client import Board, Rolltop
from .delivery import Delivery, Reports
from .errors import RolltopError
from .queue import Batching
from .tokens import sign_token

__all__ = [
    "AsyncBoard",
    "AsyncRolltop",
    "Batching",
    "Board",
    "Delivery",
    "Reports",
    "Rolltop",
    "RolltopError",
    "sign_token",
]
