"""Serves the sentence model all-MiniLM-L6-v2 at `/v1/embeddings`, as OpenAI's API does.

Takes the folder of the model. Prints its port when it is ready. The model is six layers of BERT,
and the mean over the tokens is a vector of 384 numbers.
"""

import base64
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer

LAYERS = 6
HEADS = 12
MAX_TOKENS = 256
# Texts per batch. A batch is padded to its longest text, so that large batches waste time on short texts.
BATCH_TEXTS = 16


class Model:
    """The weights of the model, and their evaluation."""

    def __init__(self, folder: Path):
        self._weights = load_file(folder / "model.safetensors")
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._tokenizer.enable_padding()

    def vectors(self, texts: list) -> np.ndarray:
        """Returns the normalized vectors of the texts, in their order."""
        order = sorted(range(len(texts)), key=lambda it: len(texts[it]))
        vectors = np.empty((len(texts), 384), dtype=np.float32)
        for first in range(0, len(order), BATCH_TEXTS):
            indexes = order[first : first + BATCH_TEXTS]
            vectors[indexes] = self._batch([texts[it] for it in indexes])
        return vectors

    def _batch(self, texts: list) -> np.ndarray:
        encodings = self._tokenizer.encode_batch(texts)
        ids = np.array([it.ids for it in encodings])
        mask = np.array([it.attention_mask for it in encodings], dtype=np.float32)
        embeddings = "embeddings.{}_embeddings.weight".format
        hidden = self._weights[embeddings("word")][ids] + self._weights[embeddings("position")][: ids.shape[1]]
        hidden = self._norm("embeddings.LayerNorm", hidden + self._weights[embeddings("token_type")][0])
        for layer in range(LAYERS):
            name = f"encoder.layer.{layer}"
            attended = self._dense(f"{name}.attention.output.dense", self._attend(name, hidden, mask))
            hidden = self._norm(f"{name}.attention.output.LayerNorm", hidden + attended)
            widened = _gelu(self._dense(f"{name}.intermediate.dense", hidden))
            hidden = self._norm(f"{name}.output.LayerNorm", hidden + self._dense(f"{name}.output.dense", widened))
        mean = (hidden * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True)
        return mean / np.linalg.norm(mean, axis=1, keepdims=True)

    def _attend(self, name: str, hidden: np.ndarray, mask: np.ndarray) -> np.ndarray:
        texts, tokens, width = hidden.shape

        def heads(which: str) -> np.ndarray:
            dense = self._dense(f"{name}.attention.self.{which}", hidden)
            return dense.reshape(texts, tokens, HEADS, width // HEADS).transpose(0, 2, 1, 3)

        scores = heads("query") @ heads("key").transpose(0, 1, 3, 2) / np.sqrt(np.float32(width // HEADS))
        scores += (1 - mask)[:, None, None, :] * np.float32(-1e9)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        return (shares @ heads("value")).transpose(0, 2, 1, 3).reshape(texts, tokens, width)

    def _dense(self, name: str, value: np.ndarray) -> np.ndarray:
        return value @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]

    def _norm(self, name: str, value: np.ndarray) -> np.ndarray:
        mean = value.mean(-1, keepdims=True)
        deviation = np.sqrt(value.var(-1, keepdims=True) + 1e-12)
        return (value - mean) / deviation * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


def _gelu(value: np.ndarray) -> np.ndarray:
    return 0.5 * value * (1 + np.tanh(np.sqrt(np.float32(2 / np.pi)) * (value + 0.044715 * value * value * value)))


class Handler(BaseHTTPRequestHandler):
    """Handles requests sequentially, because one request uses the whole processor."""

    protocol_version = "HTTP/1.1"
    model = None
    lock = threading.Lock()

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        texts = request["input"] if isinstance(request["input"], list) else [request["input"]]
        with self.lock:
            vectors = self.model.vectors(texts)
        data = [
            {"object": "embedding", "index": index, "embedding": _written(vector, request.get("encoding_format"))}
            for index, vector in enumerate(vectors)
        ]
        body = json.dumps({"object": "list", "data": data, "model": request["model"]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Logs nothing, because only the port is printed."""


def _written(vector: np.ndarray, how: str):
    return base64.b64encode(vector.astype("<f4").tobytes()).decode() if how == "base64" else vector.tolist()


if __name__ == "__main__":
    Handler.model = Model(Path(sys.argv[1]))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()
