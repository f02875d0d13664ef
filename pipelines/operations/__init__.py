"""What a person asks for: releases, publication, erasing, the papers' tables, the life of a row."""
