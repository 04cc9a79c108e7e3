# gunicorn reads this file where it starts. The orders are in the memory of one process.
worker_class, threads = "gthread", 8  # only this one keeps connections
keepalive = 120  # seconds; longer than the idle_seconds of the gateway's route, by default 90
# As much as the gateway passes on: its limits are checked already.
limit_request_line, limit_request_fields, limit_request_field_size = 0, 300, 0
