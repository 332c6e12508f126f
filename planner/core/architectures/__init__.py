"""Every architecture that is planned, by the name that config.json gives it; what is not here is unknown."""
