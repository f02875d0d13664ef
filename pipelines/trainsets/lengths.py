"""How long a prompt is: in the tokens of a real tokenizer where one is given, in characters otherwise."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.errors import UnreadableFile

# Characters of a token of Qwen's vocabulary, rounded down so that a prompt is rather dropped than cut. An estimate
# of ours, for homes without a tokenizer: verl cuts an overlong prompt on the left, where the format is asked for.
_CHARACTERS_A_TOKEN = {"zh": 1.4, "en": 4.0}


@dataclass(frozen=True)
class Ruler:
    """Measures prompts: by the tokens of a chat template with native thinking off, as verl's filter does, or, without
    a tokenizer, by the characters of all messages. `unit` names what is counted.
    """

    tokenizer: Any = None
    unit: str = "characters"

    def length(self, prompt: list[dict[str, str]]) -> int:
        """The length of a chat prompt."""
        if self.tokenizer is None:
            return sum(len(message["content"]) for message in prompt)
        encoded = self.tokenizer.apply_chat_template(
            prompt, tokenize=True, add_generation_prompt=True, enable_thinking=False, return_dict=True
        )
        return len(encoded["input_ids"])

    def limit(self, max_tokens: int, lang: str) -> int:
        """The greatest length that is `max_tokens` at the most."""
        return max_tokens if self.tokenizer is not None else int(max_tokens * _CHARACTERS_A_TOKEN[lang])


def ruler(tokenizer: Path | None) -> Ruler:
    """The ruler that the settings ask for.

    Raises UnreadableFile where the folder holds no tokenizer with a chat template, or transformers is not installed.
    """
    if tokenizer is None:
        return Ruler()
    try:
        from transformers import AutoTokenizer
    except ModuleNotFoundError as error:
        raise UnreadableFile(
            "a tokenizer is set, but transformers is not installed",
            where=tokenizer,
            hint="pip install 'gongqing[tokenizer]', or leave prompts.tokenizer out",
        ) from error
    try:
        loaded = AutoTokenizer.from_pretrained(tokenizer, local_files_only=True)
    except Exception as error:  # of a damaged file transformers raises what its parsers happen to
        raise UnreadableFile(
            "there is no tokenizer here", where=tokenizer, hint="name a folder with tokenizer.json"
        ) from error
    if not loaded.chat_template:
        raise UnreadableFile(
            "the tokenizer has no chat template", where=tokenizer, hint="use the tokenizer of a chat model"
        )
    return Ruler(loaded, f"tokens of {tokenizer.name}")
