"""What a vision-language model attends to in a picture for each word of its answer."""
