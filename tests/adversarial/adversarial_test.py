#!/usr/bin/env python3
"""Every case of the corpus comes to what its expected.txt says, in two replays with different nonces."""

import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.environ["ASSAY_SOURCE_DIR"], "tests", "integration"))
import corpus  # noqa: E402
import harness  # noqa: E402

REPLAYS = 1 if os.environ.get("ASSAY_TEST_SMALL") else 2


class Documents(unittest.TestCase):
    def test_the_threat_model_names_every_pattern_and_case(self):
        with open(os.path.join(harness.SOURCE, "THREAT_MODEL.md"), encoding="utf-8") as file:
            rows = [line for line in file if re.match(r"\| [TMSONPLHR][0-9][0-9] ", line)]
        patterns = [row[2:5] for row in rows]
        self.assertEqual((len(patterns), len(set(patterns))), (79, 79))
        self.assertEqual([row for row in rows if row.count("|") != 5], [])
        cited = set(re.findall(r"\b[ag][0-9]{2}b?\b", "".join(row.rsplit("|", 2)[1] for row in rows)))
        cases = {case.slug.split("_")[0]: case for case in corpus.read_cases()}
        self.assertEqual(sorted(cited - set(cases)), [], "in THREAT_MODEL.md, and no case")
        uncited = [slug for slug, case in cases.items() if slug not in cited and case.pattern not in ("mutant", "-")]
        self.assertEqual(uncited, [], "cases that THREAT_MODEL.md does not name")
        for case in cases.values():
            named = set(case.pattern.replace("(twin)", "").split())
            self.assertLessEqual(named, set(patterns) | {"mutant", "-"}, case.slug)


class Adversarial(unittest.TestCase):
    def test_every_case(self):
        # Audits of problems take minutes: scripts/adversarial runs them.
        cases = [case for case in corpus.read_cases() if not case.is_audit]
        self.assertGreater(len([c for c in cases if not c.is_honest]), 60)
        self.assertGreater(len([c for c in cases if c.is_honest]), 20)
        service = corpus.Corpus()
        try:
            results = service.run(cases, REPLAYS)
        finally:
            service.close()
        skipped = [result.case.slug for result in results if result.is_skipped]
        for result in results:
            with self.subTest(case=result.case.slug):
                faults = ["%s, nonce %s (%s): %s" % (r.got, r.nonce, r.fault, r.evidence) for r in result.faults]
                self.assertTrue(result.is_right, "expected %s, got %s; %s" % (result.case.expected(), result.got(), "; ".join(faults)))
        if skipped:
            self.skipTest("no CUDA compiler: %d device cases were not judged" % len(skipped))


if __name__ == "__main__":
    unittest.main(verbosity=2)
