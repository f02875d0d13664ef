"""A profile of a model that a vendor on this machine serves (`tests.doubles.vendor`), with a price that we invented."""

PROFILE = """
[qwen-plus]
base_url = "{url}"
model = "stub"
key_variable = ""
max_tokens = 300

[qwen-plus.price]
input = 2.5
output = 10
currency = "USD"
date = 2026-11-21
source = "invented"
"""
