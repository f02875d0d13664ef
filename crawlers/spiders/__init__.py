"""One spider class for every engine; `loader` makes one of them for every site."""
