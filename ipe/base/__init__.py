"""What every room may use and none of them owns: array types, checks of numbers, wording, files written whole."""
