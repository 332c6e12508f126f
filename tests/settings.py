"""The project's settings, with a data folder of the test run's own and quick passwords."""

import os
import tempfile

os.environ["PLANNER_HOME"] = tempfile.mkdtemp(prefix="planner-tests-")

from planner.settings import *

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
