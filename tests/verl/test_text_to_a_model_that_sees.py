"""Qwen2.5-VL as verl patches it, given text alone: a tiny one, on a CPU."""

import pytest
from train_env import script_result

SCRIPT = """
import json
import torch
from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration
from verl.models.transformers.monkey_patch import apply_monkey_patch

torch.manual_seed(0)
text = dict(vocab_size=300, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, max_position_embeddings=256, pad_token_id=0, bos_token_id=1, eos_token_id=2,
            rope_parameters={"rope_type": "default", "mrope_section": [2, 3, 3], "rope_theta": 10000.0})
vision = dict(depth=2, hidden_size=32, intermediate_size=48, num_heads=2, out_hidden_size=64, patch_size=14,
              spatial_merge_size=2, temporal_patch_size=2, window_size=112, fullatt_block_indexes=[1])
config = Qwen2_5_VLConfig(text_config=text, vision_config=vision, image_token_id=290, video_token_id=291,
                          vision_start_token_id=292, vision_end_token_id=293)
config._attn_implementation = "sdpa"
model = Qwen2_5_VLForConditionalGeneration(config)
ids = torch.randint(5, 200, (1, 12))
positions = torch.arange(12).view(1, 1, 12).expand(4, 1, 12).contiguous()
with torch.no_grad():
    before = model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits
apply_monkey_patch(model, use_remove_padding=False, ulysses_sp_size=1)
weights = {name: one.detach().clone() for name, one in model.model.visual.named_parameters()}
optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1)
after = model(input_ids=ids, attention_mask=torch.ones_like(ids), position_ids=positions).logits
after.float().logsumexp(-1).sum().backward()
optimiser.step()
print(json.dumps({
    "difference": float((before - after.detach()).abs().max()),
    "gradients": sum(one.grad is not None for one in model.model.visual.parameters()),
    "moved": [name for name, one in model.model.visual.named_parameters() if not torch.equal(one, weights[name])],
    "learnt": all(one.grad is not None for one in model.model.language_model.parameters()),
}))
"""


@pytest.mark.timeout(300)
@pytest.mark.xdist_group("training")
def test_it_reads_text_as_transformers_does_and_its_vision_encoder_stays_as_it_is():
    found = script_result(SCRIPT, VERL_USE_EXTERNAL_MODULES="pipelines.train.verl_text")
    assert found["difference"] < 1e-4
    assert (found["gradients"], found["moved"], found["learnt"]) == (0, [], True)
