"""The program facet, with its models and libraries in this folder."""

import os
import sys


def main() -> None:
    """Become the program, which gets the same arguments."""
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "facet")
    os.execv(program, ["facet", *sys.argv[1:]])
