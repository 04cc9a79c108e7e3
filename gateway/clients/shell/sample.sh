#!/usr/bin/env bash
# The first call: begins a login. Run it in the project's folder, once scripts/run is running.
# Copyright the Signpost authors
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

# sample: begin
source "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/signpost.sh"
signpost_client url="http://127.0.0.1:8080" key="$(<data/app.key)" app=demo
signpost_call POST /login 'provider=sandbox'
printf '%s %s\n' "$signpost_status" "$signpost_body"
# sample: end
