"""What provider `rules` says in the place of a judge: a floor to test with, and no judgement of quality."""
