"""Asks a program's health address how it is."""

from __future__ import annotations

import http
import ssl
import urllib.error
import urllib.request

# The programs show certificates of their own making; the question is whether they answer, not who.
ANY_CERTIFICATE = ssl.create_default_context()
ANY_CERTIFICATE.check_hostname = False
ANY_CERTIFICATE.verify_mode = ssl.CERT_NONE


def status(url: str) -> int | None:
    """The HTTP status that `url` answers with; None when nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=5, context=ANY_CERTIFICATE) as response:
            return int(response.status)
    except urllib.error.HTTPError as refusal:
        return refusal.code
    except OSError:
        return None


def is_healthy(url: str) -> bool:
    """Whether `url` answers 200."""
    return status(url) == http.HTTPStatus.OK
