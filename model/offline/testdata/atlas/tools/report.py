"""Counts the places of a map file and prints a table."""

import sys


class Report:
    """A table of places and how many roads leave each."""

    def __init__(self):
        self.rows = {}

    def add(self, place):
        """Count one more road that leaves a place."""
        self.rows[place] = self.rows.get(place, 0) + 1

    def lines(self):
        # TODO: align the columns
        return [f"{p}\t{n}" for p, n in sorted(self.rows.items())]


def read_places(path):
    """Yield the first word of every line of a file."""
    with open(path) as f:
        for line in f:
            if line.strip():
                yield line.split()[0]


def main():
    report = Report()
    for place in read_places(sys.argv[1]):
        report.add(place)
    print("\n".join(report.lines()))


if __name__ == "__main__":
    main()
