"""Reading of scenario files, with the path of every mistake."""
