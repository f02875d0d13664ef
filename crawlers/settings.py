"""Scrapy's settings: the manners first. What depends on the site or the request, the spider sets (`spiders.base`)."""

BOT_NAME = "gongqing"
SPIDER_MODULES = ["crawlers.spiders"]
SPIDER_LOADER_CLASS = "crawlers.spiders.SiteLoader"
COMMANDS_MODULE = "crawlers.commands"

# Manners. One request at a time, and none before the answer to the last has been read: once a site refuses,
# nothing is under way any more.
ROBOTSTXT_OBEY = True
CONCURRENT_REQUESTS = 1
CONCURRENT_REQUESTS_PER_DOMAIN = 1
DOWNLOAD_DELAY = 2.0
DOWNLOAD_DELAY_JITTER = 0.0  # a Crawl-delay is a least, not a mean
AUTOTHROTTLE_ENABLED = True
AUTOTHROTTLE_TARGET_CONCURRENCY = 1.0
COOKIES_ENABLED = False
CRAWL_DELAYS = True  # off for a replica on this machine alone
CRAWL_REFUSALS_MAX = 5  # refusals in a row before the crawl is over
CRAWL_UNREAD_MAX = 5  # posts in a row that could not be read
CRAWL_LOST_MAX = 5  # posts that the server failed to give: in a row, or
CRAWL_LOST_SHARE = 0.2  # so many, and this share of the posts that were to be fetched
CRAWL_MISSING_MIN = 10  # posts or answers that pages state and that did not come: fewer are no sign of anything
CRAWL_LIST_PAGES_MAX = 2000
CRAWL_POST_PAGES_MAX = 200

# Nothing on a page may make us reach another host, read a file, or fill our memory.
DOWNLOAD_HANDLERS = {"file": None, "data": None, "s3": None, "ftp": None}
DOWNLOAD_MAXSIZE = 8 * 1024 * 1024
DOWNLOAD_WARNSIZE = 0
DOWNLOAD_TIMEOUT = 60
DOWNLOAD_VERIFY_CERTIFICATES = True
REDIRECT_MAX_TIMES = 5
METAREFRESH_ENABLED = False
REFERER_ENABLED = True
RETRY_TIMES = 3
RETRY_PRIORITY_ADJUST = 0  # at once, after the delay: retries put off would all fail in a row at the end of a list page
RETRY_GIVE_UP_LOG_LEVEL = "DEBUG"  # we log it ourselves, by the address that was requested

# A callback yields few things, in order: no pool of workers, no inspection of its source for each page.
CONCURRENT_ITEMS = 1
WARN_ON_GENERATOR_RETURN_VALUE = False

# No doors into the process.
REMOTE_CONTROL_ENABLED = False
TELNETCONSOLE_ENABLED = False

# Every post is requested once because its id is; Scrapy's filter would drop a redirect in silence.
DUPEFILTER_CLASS = "scrapy.dupefilters.BaseDupeFilter"

# Raw pages are kept for a job to go on with, for some days (`keep_pages_days` of a crawl).
HTTPCACHE_POLICY = "crawlers.cache.CachePolicy"
HTTPCACHE_STORAGE = "crawlers.cache.CacheStorage"

DOWNLOADER_MIDDLEWARES = {
    "scrapy.downloadermiddlewares.offsite.OffsiteMiddleware": None,
    "crawlers.extensions.fence.Fence": 50,
    "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,
    "crawlers.extensions.robots.StrictRobotsTxt": 100,
    "scrapy.downloadermiddlewares.httpauth.HttpAuthMiddleware": None,
    # Below the retries, above the decompression: the cache sees pages as they are read, and no challenge.
    "scrapy.downloadermiddlewares.httpcache.HttpCacheMiddleware": 560,
    "crawlers.extensions.blocked.StopWhereBlocked": 570,
    "scrapy.downloadermiddlewares.redirect.RedirectMiddleware": None,
    "crawlers.extensions.fence.SameSiteRedirects": 600,
}
SPIDER_MIDDLEWARES = {"scrapy.spidermiddlewares.depth.DepthMiddleware": None}
EXTENSIONS = {
    "crawlers.extensions.log.Progress": 30,
    "scrapy.extensions.logstats.LogStats": None,
    "scrapy.extensions.memusage.MemoryUsage": None,
}

FEED_EXPORT_ENCODING = "utf-8"
LOG_LEVEL = "INFO"
LOG_FORMATTER = "crawlers.extensions.log.QuietLogs"
STATS_DUMP = False
LOGSTATS_INTERVAL = 5.0
