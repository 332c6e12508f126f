"""Gunicorn's settings, the same for `up` and for a container: `gunicorn --config python:planner.web_server`."""

worker_class = "gthread"
workers = 2
threads = 8
preload_app = True  # import once, then fork: half the time to the first page, and less memory
timeout = 60
graceful_timeout = 5
control_socket_disable = True  # it would open a socket in the home folder of whoever starts it
