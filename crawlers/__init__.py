"""Crawlers of help-seeking sites. They know the schemas alone."""
