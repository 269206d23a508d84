"""What disabling heads and layers does to a score."""
