"""The commands. A file is imported when one of its commands is used or listed."""
