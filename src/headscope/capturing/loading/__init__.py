"""Models by name: where their files are, how they are loaded, which weights they are."""
