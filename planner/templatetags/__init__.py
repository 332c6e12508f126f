"""What templates may ask of Python."""
