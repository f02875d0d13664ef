"""A crawl of one window becomes versions of `raw_posts`: another process crawls, this one merges what it brought.

A partition is a source and a day of posting in Shanghai. What a crawl brings is laid over what stands there: a post
that has not changed keeps its first `fetched_at`, one that has (a late answer) makes a new version of its day, and what
the crawl did not ask for stays, unless the takedown list names it.

    <home>/crawl/<source>/seen.jsonl             what lists showed when last looked at: nothing unchanged is fetched
    <home>/crawl/<source>/<window>/<number>/     the job of one crawl: its pages for some days, its posts, its figures
    <home>/takedown.txt                          ids that are never fetched
"""
