"""`--products FILE`: what the GPUs of nodes are whose labels do not say it.

products: - nodeSelector: {kubernetes.io/hostname: spark-1} product: NVIDIA-GB10 memoryMiB: 119000
"""

from __future__ import annotations

from bowsprit.cli.documents import read_files
from bowsprit.cli.problems import BadInput, Place, Problem
from bowsprit.inventory.products import ProductTable


def read_products(path: str | None) -> ProductTable:
    """An empty table without a path. Raises BadInput."""
    if path is None:
        return ProductTable()
    read = read_files([path])
    if read.problems:
        raise BadInput(read.problems)
    entries = read.documents[0].body.get("products")
    if len(read.documents) != 1 or not isinstance(entries, list):
        raise BadInput([Problem(Place(path), "products", "must be a list, in one document")])
    try:
        return ProductTable.of(entries)
    except ValueError as error:
        raise BadInput([Problem(read.documents[0].place, "", str(error))]) from error
