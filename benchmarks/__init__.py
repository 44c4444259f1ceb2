"""How fast is it, and against whom? Not part of the package; README.md says how to run them."""
