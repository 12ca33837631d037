import unittest

from report import Report


class ReportTest(unittest.TestCase):
    def test_counts_places(self):
        report = Report()
        report.add("lake")
        report.add("lake")
        self.assertEqual(report.lines(), ["lake\t2"])
