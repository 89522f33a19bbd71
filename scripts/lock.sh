#!/usr/bin/env bash
# Write constraints.txt: every package that pyproject.toml leads to, with hashes, for every platform.
# Versions that still fit are kept; UPGRADE=1 takes the newest ones.
# uv runs from a throwaway environment, so that a broken lock can still be replaced. It reads its own index
# settings (UV_DEFAULT_INDEX, uv.toml), not pip's; none of them reaches the file.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${PYTHON:-python3}" -m venv "$work/venv"
"$work/venv/bin/python" -m pip -qq --disable-pip-version-check install 'uv==0.13.7' 'packaging>=24'

if [[ -z "${UPGRADE:-}" && -f constraints.txt ]]; then
  cp constraints.txt "$work/constraints.txt" # uv prefers the versions it finds in its output file
fi
# Without the extra stable-baselines3, which leads to torch.
# --fork-strategy fewest: one version of NumPy and SciPy for every Python, so that numbers do not depend on it.
"$work/venv/bin/uv" pip compile --quiet --python "$work/venv/bin/python" \
  --universal --python-version 3.11 --fork-strategy fewest --generate-hashes \
  --no-emit-index-url --no-header --no-annotate \
  --extra gymnasium --extra minari --extra minatar --extra onnx --extra optuna --extra sweeps --extra tensorboard --group dev --output-file "$work/constraints.txt" pyproject.toml
"$work/venv/bin/python" scripts/check_lock.py "$work/constraints.txt"

cat "$work/constraints.txt" > constraints.txt
echo "constraints.txt: $(grep -c '==' constraints.txt) packages"
