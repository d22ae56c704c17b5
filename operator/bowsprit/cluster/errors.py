"""What a request to the API server can end in, sorted by what the caller must do about it.

Three outcomes matter: try again later, somebody was faster, and no. Everything that the client raises is one
of these, so that no other module ever looks at an HTTP status.
"""

from __future__ import annotations


class ClusterError(Exception):
    """A request failed. `message` is the API server's own text where there is one."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.status = status


class Unavailable(ClusterError):
    """No answer, or one that means "later" (429, 5xx): repeat with back-off."""


class Unreachable(Unavailable):
    """Nobody answers at the API server's address."""


class Conflict(ClusterError):
    """The object changed or exists already (409): read again, decide again."""


class NotFound(ClusterError):
    """The object is not there (404)."""


class NotServed(ClusterError):
    """The kind is not there: its definition is not installed, or the API server is still starting.

    Says nothing about any object, so nothing may be deleted because of it.
    """


class Gone(ClusterError):
    """The resourceVersion is too old (410): list again."""


class Refused(ClusterError):
    """The API server understood and said no (400, 403, 422): repeating the same request is useless."""


def from_status(status: int, message: str) -> ClusterError:
    kinds: dict[int, type[ClusterError]] = {
        404: NotFound,
        409: Conflict,
        410: Gone,
        429: Unavailable,
        401: Unavailable,
    }
    default: type[ClusterError] = Unavailable if status >= 500 else Refused
    return kinds.get(status, default)(message, status)
