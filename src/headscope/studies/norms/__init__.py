"""The weight is not the contribution: Kobayashi's study of norms."""
