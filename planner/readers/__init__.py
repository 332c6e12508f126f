"""Text in, facts out: no database, no network, no clock."""
