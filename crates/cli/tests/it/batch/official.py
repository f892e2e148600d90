"""Files and batches through the official client, as a script that knows nothing of Flyball."""
import json, sys, time, io
from openai import OpenAI, NotFoundError, BadRequestError, ConflictError
base = sys.argv[1]; n = int(sys.argv[2]) if len(sys.argv) > 2 else 200
c = OpenAI(base_url=base, api_key="k1", max_retries=0)
def line(i, **kw):
    body = {"model": "llama-3.1-8b", "messages": [{"role": "user", "content": f"Hello number {i}"}], "max_tokens": 20}
    body.update(kw)
    return json.dumps({"custom_id": f"req-{i}", "method": "POST", "url": "/v1/chat/completions", "body": body})
text = "\n".join(line(i) if i % 10 else line(i, max_tokens=-5) for i in range(n)) + "\n"
f = c.files.create(file=("in.jsonl", text.encode()), purpose="batch")
print("file", f)
assert f.bytes == len(text) and f.purpose == "batch" and f.object == "file"
assert c.files.retrieve(f.id).id == f.id
assert c.files.content(f.id).read() == text.encode()
assert f.id in [x.id for x in c.files.list(purpose="batch")]
b = c.batches.create(input_file_id=f.id, endpoint="/v1/chat/completions", completion_window="24h", metadata={"a": "b"})
print("batch", b)
assert b.status == "validating"
try: c.files.delete(f.id); assert False
except ConflictError as e: print("delete refused:", e.code)
t = time.time()
while True:
    b = c.batches.retrieve(b.id)
    if b.status in ("completed", "failed", "expired", "cancelled"): break
    time.sleep(0.5)
print("after", round(time.time() - t, 1), b)
out = [json.loads(l) for l in c.files.content(b.output_file_id).text.splitlines()] if b.output_file_id else []
err = [json.loads(l) for l in c.files.content(b.error_file_id).text.splitlines()] if b.error_file_id else []
print("output", len(out), "errors", len(err), "first", json.dumps(out[0])[:400] if out else None, json.dumps(err[0])[:400] if err else None)
ids = [l["custom_id"] for l in out + err]
assert sorted(ids) == sorted(f"req-{i}" for i in range(n)), "lost or doubled"
assert b.request_counts.total == n == b.request_counts.completed + b.request_counts.failed
from openai.types.chat import ChatCompletion
for l in out: ChatCompletion.model_validate(l["response"]["body"])
assert all(l["response"]["body"]["usage"]["completion_tokens"] == 20 for l in out)
# a bad file
bad = c.files.create(file=("bad.jsonl", (line(1) + "\n" + line(1) + "\nnope\n").encode()), purpose="batch")
b2 = c.batches.create(input_file_id=bad.id, endpoint="/v1/chat/completions", completion_window="24h")
while b2.status == "validating": time.sleep(0.3); b2 = c.batches.retrieve(b2.id)
print("bad", b2.status, b2.errors)
assert b2.status == "failed" and [e.code for e in b2.errors.data] == ["duplicate_custom_id", "invalid_json_line"]
# cancel
f3 = c.files.create(file=("in.jsonl", "\n".join(line(i, max_tokens=2000) for i in range(300)).encode()), purpose="batch", expires_after={"anchor": "created_at", "seconds": 3600})
b3 = c.batches.create(input_file_id=f3.id, endpoint="/v1/chat/completions", completion_window="24h")
while c.batches.retrieve(b3.id).status != "in_progress": time.sleep(0.2)
time.sleep(1)
b3 = c.batches.cancel(b3.id); print("cancel", b3.status)
while b3.status == "cancelling": time.sleep(0.3); b3 = c.batches.retrieve(b3.id)
print("cancelled", b3.status, b3.request_counts)
n3 = sum(len(c.files.content(i).text.splitlines()) for i in (b3.output_file_id, b3.error_file_id) if i)
assert b3.status == "cancelled" and n3 == 300
try: c.batches.cancel(b3.id); assert False
except ConflictError as e: print("again:", e.code)
print("list", [x.id for x in c.batches.list(limit=2)])
assert [x.id for x in c.batches.list(limit=2)][:3] == [b3.id, b2.id, b.id][:3]
for bad in ("file-x", "file-" + "0" * 30):
    try: c.files.retrieve(bad); assert False
    except NotFoundError: pass
try: c.batches.create(input_file_id=f.id, endpoint="/v1/moderations", completion_window="24h"); assert False
except BadRequestError as e: print(e.code)
print(c.files.delete(f.id))
try: c.files.content(f.id); assert False
except NotFoundError: pass
print("all good")
