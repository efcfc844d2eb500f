"""CEL syntax: lexer, parser, macros, literals and syntax errors."""
