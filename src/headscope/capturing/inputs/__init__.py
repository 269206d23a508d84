"""What the user gives, parsed once: texts, pairs, pictures, sounds, encoded inputs."""
