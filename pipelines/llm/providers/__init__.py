"""Who answers: an API of OpenAI's kind, a recording of one, or replies that we wrote for the samples.

Chosen by a setting, never by what is at hand.
"""
