#!/usr/bin/env python3
"""Every case of the corpus comes to what its expected.txt says, in two replays with different nonces."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.environ["ASSAY_SOURCE_DIR"], "tests", "integration"))
import corpus  # noqa: E402

REPLAYS = 1 if os.environ.get("ASSAY_TEST_SMALL") else 2


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
