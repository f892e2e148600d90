#!/usr/bin/env bash
# Serves the tiny model with the real vLLM on loopback: vllm.sh ENGINES PORT [OPTION…]
# ENGINES is the folder that `cargo xtask engines --vllm` names. Options go to `vllm serve`.
set -euo pipefail
engines=$1 port=$2
shift 2
export HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1
# One gigabyte of cache, one thread on one core: two servers on a machine need two cores.
export VLLM_CPU_KVCACHE_SPACE=1 OMP_NUM_THREADS=1 VLLM_CPU_OMP_THREADS_BIND=${VLLM_CORE:-0}
# float32, because the default, 16 bits, ends in an illegal instruction on CPUs with AMX.
# 64 blocks of 128 tokens: few enough that a burst of tests fills them.
# --shutdown-timeout: vLLM's own default is 0, and stalls every stream on SIGTERM.
exec "$engines/vllm/bin/python" -m vllm.entrypoints.cli.main serve "$engines/nano-hf" \
  --host 127.0.0.1 --port "$port" --served-model-name nano --dtype float32 --enforce-eager \
  --max-model-len 2048 --max-num-seqs 32 --num-gpu-blocks-override 64 --shutdown-timeout 30 "$@"
