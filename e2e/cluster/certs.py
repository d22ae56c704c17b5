"""The control plane's certificate authorities and the certificates that they issue.

Two authorities, as in every cluster: one vouches for servers and users; the other only for the API server
as a front proxy, because whoever holds a certificate of *that* authority may claim to be anybody towards an
aggregated API.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

# A test cluster lives for minutes; one left running by `up` may live for a while.
VALID_FOR = datetime.timedelta(days=365)


@dataclass(frozen=True)
class KeyPair:
    """A certificate and its private key, as PEM files."""

    certificate: Path
    key: Path


class Authority:
    """A certificate authority kept in a directory; made on first use, taken up again afterwards."""

    def __init__(self, directory: Path, name: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self.files = KeyPair(directory / f"{name}.crt", directory / f"{name}.key")
        if not self.files.key.exists():
            self._create(name)
        self._certificate = x509.load_pem_x509_certificate(self.files.certificate.read_bytes())
        key = serialization.load_pem_private_key(self.files.key.read_bytes(), password=None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        self._key = key

    def _create(self, name: str) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = (
            _builder(subject, subject, key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_ca_key_usage(), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        _write(self.files, certificate, key)

    def issue(self, name: str, *, groups: Sequence[str] = (), hosts: Sequence[str] = ()) -> KeyPair:
        """A certificate for a user or server. `groups`: its RBAC groups; `hosts`: its names or addresses."""
        files = KeyPair(*(self._directory / f"{name.replace(':', '-')}.{end}" for end in ("crt", "key")))
        key = ec.generate_private_key(ec.SECP256R1())
        organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject = x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, name)])
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
        builder = (
            _builder(subject, self._certificate.subject, key)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
            )
        )
        if hosts:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False
            )
        _write(files, builder.sign(self._key, hashes.SHA256()), key)
        return files


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # An hour back, for clocks that were set between two starts.
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + VALID_FOR)
    )


def _ca_key_usage() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _write(files: KeyPair, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
    files.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    files.key.touch(mode=0o600)
    files.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
