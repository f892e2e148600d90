"""Calls a gateway with the official OpenAI and Anthropic clients, as a user would.

    python clients.py GATEWAY --model NAME [--embeddings NAME]

The gateway must hold two keys: KEY, without a limit, and LIMITED, with one request a minute.
Each check prints a line; the last line is the verdict, and the exit status is 1 if one failed.
"""

import argparse
import sys
import time
import traceback

import anthropic
import openai

KEY, LIMITED = "test-key", "test-key-limited"
ASK = [{"role": "user", "content": "Name three colours."}]
CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


class Clients:
    def __init__(self, gateway, model, embeddings):
        self.gateway, self.model, self.embeddings = gateway, model, embeddings
        self.openai, self.anthropic = self.openai_with(KEY), self.anthropic_with(KEY)

    # Clients of their own kind try again by themselves; a check must see the first answer.
    def openai_with(self, key):
        return openai.OpenAI(base_url=self.gateway + "/v1", api_key=key, max_retries=0, timeout=30)

    def anthropic_with(self, key):
        return anthropic.Anthropic(base_url=self.gateway, api_key=key, max_retries=0, timeout=30)


def raises(kind, call):
    try:
        call()
    except kind as error:
        return error
    except Exception as error:
        raise AssertionError(f"{type(error).__name__} instead of {kind.__name__}: {error}")
    raise AssertionError(f"no {kind.__name__}")


@check
def openai_lists_models(clients):
    names = [model.id for model in clients.openai.models.list()]
    assert clients.model in names, names


@check
def openai_chat(clients):
    answer = clients.openai.chat.completions.create(
        model=clients.model, messages=ASK, max_tokens=16, temperature=0
    )
    assert answer.choices[0].message.content, answer
    assert answer.usage.completion_tokens > 0, answer.usage
    assert answer._request_id, "no x-request-id"


@check
def openai_chat_streams_the_same_text(clients):
    settings = dict(model=clients.model, messages=ASK, max_tokens=16, temperature=0)
    whole = clients.openai.chat.completions.create(**settings).choices[0].message.content
    pieces, usage = [], None
    stream = clients.openai.chat.completions.create(
        **settings, stream=True, stream_options={"include_usage": True}
    )
    for event in stream:
        usage = event.usage or usage
        pieces += [choice.delta.content or "" for choice in event.choices]
    assert len(pieces) > 5, pieces
    assert "".join(pieces) == whole, (pieces, whole)
    assert usage and usage.completion_tokens > 0, usage


@check
def openai_completions(clients):
    answer = clients.openai.completions.create(model=clients.model, prompt="Once", max_tokens=8)
    assert answer.choices[0].text, answer


@check
def openai_responses(clients):
    answer = clients.openai.responses.create(
        model=clients.model, input="Name three colours.", max_output_tokens=16
    )
    assert answer.output_text, answer


@check
def openai_responses_stream(clients):
    stream = clients.openai.responses.create(
        model=clients.model, input="Name three colours.", max_output_tokens=16, stream=True
    )
    kinds = [event.type for event in stream]
    assert "response.output_text.delta" in kinds and kinds[-1] == "response.completed", kinds


@check
def openai_embeddings(clients):
    if clients.embeddings is None:
        return "skipped: no model of embeddings was named"
    answer = clients.openai.embeddings.create(model=clients.embeddings, input=["one", "two"])
    assert len(answer.data) == 2 and len(answer.data[0].embedding) > 10


@check
def openai_hangs_up(clients):
    stream = clients.openai.chat.completions.create(
        model=clients.model, messages=ASK, max_tokens=1500, stream=True,
        extra_body={"ignore_eos": True},
    )
    for count, _ in enumerate(stream):
        if count == 5:
            break
    stream.close()
    begin = time.monotonic()
    openai_chat(clients)
    return f"next answer {1000 * (time.monotonic() - begin):.0f} ms after it"


@check
def openai_errors_have_their_classes(clients):
    def chat(client, model):
        return client.chat.completions.create(model=model, messages=ASK, max_tokens=1)

    wrong = clients.openai_with("no")
    error = raises(openai.AuthenticationError, lambda: chat(wrong, clients.model))
    assert error.status_code == 401 and error.code == "invalid_api_key", error
    error = raises(openai.NotFoundError, lambda: chat(clients.openai, "no-such-model"))
    assert error.code == "model_not_found", error
    error = raises(
        openai.BadRequestError,
        lambda: clients.openai.chat.completions.create(
            model=clients.model, messages=ASK, extra_body={"max_tokens": "many"}
        ),
    )
    limited = clients.openai_with(LIMITED)
    twice = lambda: [chat(limited, clients.model) for _ in range(2)]
    error = raises(openai.RateLimitError, twice)
    assert int(error.response.headers["retry-after"]) > 0, error.response.headers


@check
def anthropic_message(clients):
    answer = clients.anthropic.messages.create(model=clients.model, messages=ASK, max_tokens=16)
    assert answer.content[0].text and answer.usage.output_tokens > 0, answer


@check
def anthropic_stream(clients):
    settings = dict(model=clients.model, messages=ASK, max_tokens=16)
    with clients.anthropic.messages.stream(**settings) as stream:
        pieces = list(stream.text_stream)
        final = stream.get_final_message()
    assert len(pieces) > 5 and final.stop_reason, (pieces, final)
    assert "".join(pieces) == final.content[0].text


@check
def anthropic_hangs_up(clients):
    settings = dict(model=clients.model, messages=ASK, max_tokens=1500)
    with clients.anthropic.messages.stream(**settings) as stream:
        next(iter(stream.text_stream))
    anthropic_message(clients)


@check
def anthropic_errors_have_their_classes(clients):
    def message(client, model):
        return client.messages.create(model=model, messages=ASK, max_tokens=1)

    wrong = clients.anthropic_with("no")
    error = raises(anthropic.AuthenticationError, lambda: message(wrong, clients.model))
    assert error.body["error"]["type"] == "authentication_error", error.body
    error = raises(anthropic.NotFoundError, lambda: message(clients.anthropic, "no-such-model"))
    assert error.body["error"]["type"] == "not_found_error", error.body
    limited = clients.anthropic_with(LIMITED)
    # The limit is the key's, so the checks of the other client may have used it up already.
    twice = lambda: [message(limited, clients.model) for _ in range(2)]
    error = raises(anthropic.RateLimitError, twice)
    assert error.body["error"]["type"] == "rate_limit_error", error.body


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("gateway")
    arguments.add_argument("--model", required=True)
    arguments.add_argument("--embeddings")
    told = arguments.parse_args()
    clients = Clients(told.gateway, told.model, told.embeddings)
    failed = 0
    for function in CHECKS:
        begin = time.monotonic()
        try:
            remark = function(clients) or ""
            word = "skip" if remark.startswith("skipped") else "ok"
        except Exception as error:
            failed, word, remark = failed + 1, "FAIL", "".join(traceback.format_exception(error))
        milliseconds = 1000 * (time.monotonic() - begin)
        print(f"{word:<5} {milliseconds:>6.0f} ms  {function.__name__}  {remark}".rstrip())
    versions = f"openai {openai.__version__}, anthropic {anthropic.__version__}"
    print(f"clients: {len(CHECKS) - failed} of {len(CHECKS)} checks passed ({versions})")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
