"""The first call: begins a login. Run it in the project's folder, once scripts/run is running."""
# Copyright the Signpost authors
# SPDX-License-Identifier: Apache-2.0

# sample: begin
from pathlib import Path
import signpost
key = Path("data/app.key").read_text().strip()
client = signpost.Client("http://127.0.0.1:8080", key, app="demo")
response = client.call("POST", "/login", [("provider", "sandbox")])
print(response.status, response.text)
# sample: end
