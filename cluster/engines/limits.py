"""Uses up budgets and limits with the official OpenAI and Anthropic clients, as a user would.

    python limits.py GATEWAY --model NAME

The gateway must let in the keys `openai-budget` and `anthropic-budget`, each of a Tenant with a budget of some thousand tokens
that refuses, and `few-requests`, of a Tenant with a limit of requests per minute. Each check prints a line; the exit status is 1 if
one failed.
"""

import argparse
import sys
import traceback

import anthropic
import httpx2  # what the pinned clients speak HTTP with
import openai

ASK = [{"role": "user", "content": "Tell me a long story."}]
LONG = 8000
CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


class Clients:
    def __init__(self, gateway, model):
        self.gateway, self.model, self.sent = gateway, model, 0

    def http(self):
        def count(_):
            self.sent += 1

        return httpx2.Client(event_hooks={"request": [count]}, timeout=120)

    # As they are: they try twice more whatever they are not told not to.
    def openai(self, key):
        return openai.OpenAI(
            base_url=self.gateway + "/v1", api_key=key, http_client=self.http(), max_retries=2
        )

    def anthropic(self, key):
        return anthropic.Anthropic(
            base_url=self.gateway, api_key=key, http_client=self.http(), max_retries=2
        )


def raises(kind, call):
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")


@check
def openai_stream_ends_with_the_budget(clients):
    client, text = clients.openai("openai-budget"), []

    def stream():
        for event in client.chat.completions.create(
            model=clients.model, messages=ASK, max_tokens=LONG, stream=True
        ):
            text.extend(choice.delta.content or "" for choice in event.choices)

    error = raises(openai.APIError, stream)
    assert error.code == "insufficient_quota", error
    assert len(text) > 100, f"only {len(text)} events before it"


@check
def openai_does_not_try_again_without_money(clients):
    client = clients.openai("openai-budget")
    clients.sent = 0
    error = raises(
        openai.RateLimitError,
        lambda: client.chat.completions.create(
            model=clients.model, messages=ASK, max_tokens=LONG, stream=True
        ),
    )
    assert error.code == "insufficient_quota", error
    assert clients.sent == 1, f"{clients.sent} requests"


@check
def anthropic_stream_ends_with_the_budget(clients):
    client, text = clients.anthropic("anthropic-budget"), []

    def stream():
        with client.messages.stream(model=clients.model, messages=ASK, max_tokens=LONG) as events:
            text.extend(events.text_stream)

    error = raises(anthropic.APIStatusError, stream)
    assert "billing_error" in str(error), error
    assert len(text) > 100, f"only {len(text)} events before it"


@check
def anthropic_does_not_try_again_without_money(clients):
    client = clients.anthropic("anthropic-budget")
    clients.sent = 0
    error = raises(
        anthropic.APIStatusError,
        lambda: client.messages.create(model=clients.model, messages=ASK, max_tokens=LONG),
    )
    assert error.status_code == 402, error
    assert clients.sent == 1, f"{clients.sent} requests"


@check
def openai_reads_what_is_left(clients):
    client = clients.openai("few-requests").with_options(max_retries=0)
    answer = client.chat.completions.with_raw_response.create(
        model=clients.model, messages=ASK, max_tokens=1
    )
    limit = int(answer.headers["x-ratelimit-limit-requests"])
    assert int(answer.headers["x-ratelimit-remaining-requests"]) < limit
    for _ in range(limit):
        try:
            client.chat.completions.create(model=clients.model, messages=ASK, max_tokens=1)
        except openai.RateLimitError as error:
            assert error.code == "rate_limit_exceeded", error
            assert int(error.response.headers["retry-after-ms"]) > 0
            break
    else:
        raise AssertionError(f"more than {limit} requests in a minute")
    limits = client.get("/flyball/limits", cast_to=object)
    assert limits["limits"][0]["limit"] == limit, limits


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("gateway")
    parser.add_argument("--model", required=True)
    args = parser.parse_args()
    clients, failed = Clients(args.gateway, args.model), 0
    for function in CHECKS:
        try:
            function(clients)
            print(f"ok {function.__name__}")
        except Exception:
            failed += 1
            print(f"FAILED {function.__name__}")
            traceback.print_exc(file=sys.stdout)
    print(f"{len(CHECKS) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
