"""A judge of C's that a run has left, served as a host serves it: `python served_model.py FOLDER`, in `.venv-train`.

It answers OpenAI's chat completions on 127.0.0.1 by the likeliest of the verdicts that may be asked for, as vLLM does
with `guided_choice`: a tiny model that has learnt from few would now and then write about another step. The first line
printed is its address. It ends when its standard input does.
"""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from pipelines.judge.turns import CHOICES, STEPS, write_choice, write_step

LANGUAGES = ("zh", "en")


def _verdicts(turn: dict[str, Any]) -> list[str]:
    """Those that may be given in a turn, in either language."""
    if turn.get("step") in STEPS:
        return [write_step(turn["step"], right, lang) for right in (True, False) for lang in LANGUAGES]
    return [write_choice(choice, lang) for choice in CHOICES for lang in LANGUAGES]


def _serve(folder: str) -> ThreadingHTTPServer:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_num_threads(1)
    tokens = AutoTokenizer.from_pretrained(folder)
    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    one_at_a_time = threading.Lock()

    def likeliest(prompt: list[int], verdicts: list[str]) -> str:
        written = [[*tokens.encode(one, add_special_tokens=False), tokens.eos_token_id] for one in verdicts]
        longest = max(map(len, written))
        labels = torch.tensor([one + [-100] * (longest - len(one)) for one in written])
        read = model(input_ids=torch.tensor([prompt[:-1]]), use_cache=True, logits_to_keep=1).past_key_values
        read.batch_repeat_interleave(len(written))
        before = torch.tensor([[prompt[-1], *one[:-1], *[0] * (longest - len(one))] for one in written])
        logits = model(input_ids=before, past_key_values=read, use_cache=True).logits
        losses = torch.nn.functional.cross_entropy(logits.mT, labels, ignore_index=-100, reduction="none").sum(1)
        return verdicts[int(losses.argmin())]

    def reply(messages: list[dict[str, str]]) -> dict[str, Any]:
        prompt = tokens.apply_chat_template(messages, add_generation_prompt=True, enable_thinking=False)["input_ids"]
        with one_at_a_time, torch.no_grad():
            text = likeliest(prompt, _verdicts(json.loads(messages[-1]["content"])))
        message = {"role": "assistant", "content": text}
        usage = {"prompt_tokens": len(prompt), "completion_tokens": len(text)}
        return {"model": "m", "choices": [{"index": 0, "finish_reason": "stop", "message": message}], "usage": usage}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            body = json.dumps(reply(asked["messages"])).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    return ThreadingHTTPServer(("127.0.0.1", 0), Handler)


if __name__ == "__main__":
    server = _serve(sys.argv[1])
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdout.write(f"http://127.0.0.1:{server.server_port}/v1\n")
    sys.stdout.flush()
    sys.stdin.read()
