"""What the recorded numbers say; one question a file."""
