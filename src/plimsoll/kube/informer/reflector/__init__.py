"""Lists and watches one kind of object and decodes what the API server sends."""
