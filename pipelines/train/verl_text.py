"""Text alone, to a model that sees (Qwen2.5-VL): what of verl 0.9.1 must be changed for it, on GPUs.

    VERL_USE_EXTERNAL_MODULES=pipelines.train.verl_text

Where a batch holds no picture, verl shows the vision encoder a blank one, which fails with the transformers that verl
0.9.1 asks for. Our batches are text alone: the encoder is left out, so it has no gradient, and stays as it is, which C
asks of its reward model. Another version is refused: these lines were read in this one.
"""

from typing import Any

import verl
from verl.models.transformers import qwen2_vl

VERSION = "0.9.1"

if verl.__version__.partition("+")[0] != VERSION:
    raise ImportError(
        f"gongqing's batches of text were written for verl {VERSION}, and {verl.__version__} is installed: install "
        "requirements/train-gpu.txt, or read pipelines/train/verl_text.py again beside the new version"
    )

_embedded = qwen2_vl._get_input_embeds


def _text_embedded(model: Any, input_ids: Any, attention_mask: Any = None, *pictures: Any, **kwargs: Any) -> Any:
    if any(one is not None for one in (*pictures, *kwargs.values())):
        return _embedded(model, input_ids, attention_mask, *pictures, **kwargs)
    embeddings = model.get_input_embeddings()(input_ids)
    return embeddings, attention_mask if attention_mask is None else attention_mask.to(embeddings.device)


qwen2_vl._get_input_embeds = _text_embedded
