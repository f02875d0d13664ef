"""The assets' keys: one a table, and one a site for the crawled posts."""

import dagster as dg

from crawlers.sites import Site, sites
from pipelines.crawl.collecting import TABLE


def crawled_sites() -> dict[str, Site]:
    """The sites that are there to be crawled."""
    return {name: site for name, site in sites().items() if not site.example}


def key_of(source: str) -> dg.AssetKey:
    """The asset of a site."""
    return dg.AssetKey([TABLE, source])


def keys_of(table: str) -> list[dg.AssetKey]:
    """The assets that make a table."""
    return [key_of(source) for source in crawled_sites()] if table == TABLE else [dg.AssetKey(table)]
