"""Commands of ours in the place of Scrapy's."""
