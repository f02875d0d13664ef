"""How the pages of each engine are read, one module an engine.

A module has `LATEST` (the path of the list of all posts; None where there is none) and, where the engine has boards,
`board_path(site, board)`; `list_page` and `post_page`, which read the records of `crawlers.records`, or raise
UnknownLayout for another page and PageError for one in which something is missing, stands twice, or ran into another
part of the page; `SELECTORS` (CSS by name, which a site may override); `JSON` (whether the engine answers in JSON) and
`ORDERED` (whether its lists are in the order of posting, not of the last answer).
"""
