"""Text to typed settings: readers of the users' files and the one table of keys. Pure: no file, no environment."""
