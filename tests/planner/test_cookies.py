"""Cookies go over https alone where the public address is one."""

import json
import os
import subprocess
import sys

import pytest

SAY = "import json, planner.settings as s; print(json.dumps([s.SESSION_COOKIE_SECURE, s.CSRF_COOKIE_SECURE]))"


@pytest.mark.parametrize(("address", "secure"), [("https://planner.example", True), ("http://127.0.0.1:8000", False)])
def test_cookies_are_secure_where_the_address_is(tmp_path, address, secure):
    environment = {**os.environ, "PLANNER_URL": address, "PLANNER_HOME": str(tmp_path)}
    printed = subprocess.run([sys.executable, "-c", SAY], env=environment, capture_output=True, check=True).stdout
    assert json.loads(printed) == [secure, secure]
