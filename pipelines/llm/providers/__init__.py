"""Who answers: an API of OpenAI's kind, a recording of one, or rules. Chosen by a setting, never by what is at hand."""
