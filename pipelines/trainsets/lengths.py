"""How long a prompt is: in the tokens of a real tokenizer where one is given, in characters otherwise."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pipelines.errors import UnreadableFile

# Characters of a token of Qwen's vocabulary, rounded down so that a prompt is rather dropped than cut. An estimate
# of ours, for homes without a tokenizer: verl cuts an overlong prompt on the left, where the format is asked for.
_CHARACTERS_A_TOKEN = {"zh": 1.4, "en": 4.0}


class Ruler(Protocol):
    """Measures prompts."""

    @property
    def unit(self) -> str:
        """What is counted."""

    def length(self, prompt: list[dict[str, str]]) -> int:
        """The length of a chat prompt."""

    def limit(self, max_tokens: int, lang: str) -> int:
        """The greatest length that is `max_tokens` at the most."""


class Characters:
    """Counts the characters of all messages."""

    unit = "characters"

    def length(self, prompt: list[dict[str, str]]) -> int:
        return sum(len(message["content"]) for message in prompt)

    def limit(self, max_tokens: int, lang: str) -> int:
        return int(max_tokens * _CHARACTERS_A_TOKEN[lang])


@dataclass(frozen=True)
class Tokens:
    """Counts the tokens of the chat template with native thinking off, as verl's filter does."""

    tokenizer: Any
    unit: str

    def length(self, prompt: list[dict[str, str]]) -> int:
        encoded = self.tokenizer.apply_chat_template(
            prompt, tokenize=True, add_generation_prompt=True, enable_thinking=False, return_dict=True
        )
        return len(encoded["input_ids"])

    def limit(self, max_tokens: int, lang: str) -> int:  # noqa: ARG002  # a token is a token in every language
        return max_tokens


def ruler(tokenizer: Path | None) -> Ruler:
    """The ruler that the settings ask for.

    Raises UnreadableFile where the folder holds no tokenizer with a chat template, or transformers is not installed.
    """
    if tokenizer is None:
        return Characters()
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
    return Tokens(loaded, f"tokens of {tokenizer.name}")
