"""Asks a sleeping model with the official OpenAI client, as a user would: its own time-out, and no
second try that could hide a first one that failed.

    python hold.py GATEWAY --model NAME --each N

Asks N times whole and N times as a stream, all at once. Prints one JSON object; the exit status is 1
if one of them was not answered.
"""

import argparse
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import openai

ASK = [{"role": "user", "content": "Good morning."}]


def whole(client, model):
    answer = client.chat.completions.create(model=model, messages=ASK, max_tokens=8)
    assert answer.choices[0].message.content, answer


def streamed(client, model):
    stream = client.chat.completions.create(model=model, messages=ASK, max_tokens=8, stream=True)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
    assert text, "an empty stream"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("gateway")
    parser.add_argument("--model", required=True)
    parser.add_argument("--each", type=int, required=True)
    args = parser.parse_args()
    client = openai.OpenAI(base_url=args.gateway + "/v1", api_key="none", max_retries=0)
    began = time.monotonic()
    errors = []

    def run(ask):
        try:
            ask(client, args.model)
        except Exception as error:
            errors.append(f"{ask.__name__}: {type(error).__name__}: {error}")

    with ThreadPoolExecutor(2 * args.each) as pool:
        list(pool.map(run, [whole, streamed] * args.each))
    seconds = time.monotonic() - began
    answered = 2 * args.each - len(errors)
    print(json.dumps({"answered": answered, "errors": errors, "seconds": round(seconds, 1)}))
    sys.exit(1 if errors else 0)


main()
