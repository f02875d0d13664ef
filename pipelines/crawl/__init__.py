"""A crawl of one window becomes versions of `raw_posts`: another process crawls, this one merges what it fetched.

A partition is a source and a day of posting in Shanghai.

    <home>/crawl/<source>/seen.jsonl             what lists showed when last read: nothing unchanged is fetched
    <home>/crawl/<source>/<window>/<number>/     the job of one crawl: its pages for some days, its posts, its figures
    <home>/crawl/<source>/<window>_<ids>/        the same, of walks over ids
    <home>/takedown.txt                          ids that are never fetched
"""
