"""datatrove: its four MinHash stages, one after the other in this process.

Settings: `characters` (a word is a character, the text is taken as it is, 16 bands of 8), `mandarin` (its language
setting cmn_Hani: spaCy with jieba) and `default` (its normalisation, English words, 14 bands of 8).
"""

import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path

from datatrove.data import Document
from datatrove.pipeline.dedup import (
    MinhashDedupBuckets,
    MinhashDedupCluster,
    MinhashDedupFilter,
    MinhashDedupSignature,
)
from datatrove.pipeline.dedup.minhash import MinhashConfig
from datatrove.utils.text import TextNormConfig
from datatrove.utils.typeshelper import Languages
from datatrove.utils.word_tokenizers import WhitespaceTokenizer
from loguru import logger
from measure import run

AS_IT_IS = TextNormConfig(
    lowercase=False, norm_whitespace=False, remove_punctuation=False, norm_unicode_diacritics=False, norm_numbers=False
)
CONFIGS = {
    "characters": MinhashConfig(num_buckets=16, hashes_per_bucket=8, norm_config=AS_IT_IS),
    "mandarin": MinhashConfig(),
    "default": MinhashConfig(),
}


class Characters(WhitespaceTokenizer):
    def word_tokenize(self, text: str) -> list[str]:
        return list(text)


def deduplicate(texts: list[str], setting: str) -> Iterator[int]:
    config = CONFIGS[setting]

    def documents() -> Iterator[Document]:
        return (Document(text=text, id=str(row)) for row, text in enumerate(texts))

    with tempfile.TemporaryDirectory() as folder:
        signatures, buckets, removed = (str(Path(folder) / name) for name in ("signatures", "buckets", "removed"))
        language = "cmn_Hani" if setting == "mandarin" else Languages.english
        signing = MinhashDedupSignature(signatures, config, language)
        if setting == "characters":
            signing.word_tokenizer = Characters()
        signing.run(documents())
        for bucket in range(config.num_buckets):
            MinhashDedupBuckets(signatures, buckets, config=config).run(rank=bucket, world_size=config.num_buckets)
        MinhashDedupCluster(buckets, removed, config).run()
        for document in MinhashDedupFilter(removed).run(documents()):
            yield int(document.id)


if __name__ == "__main__":
    logger.remove()
    logging.disable()
    run(deduplicate)
