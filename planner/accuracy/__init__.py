"""How right the planner is: published boots predicted from their command alone, and scored against their log."""
