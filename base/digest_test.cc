#include "base/digest.h"

#include "gtest/gtest.h"

namespace assay {
namespace {

TEST(Digest, Sha256MatchesPublishedVectors) {
  // FIPS 180-4 examples.
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Digest, FieldsAreFramed) {
  EXPECT_NE(DigestBuilder().Add("ab").Add("c").Finish(),
            DigestBuilder().Add("a").Add("bc").Finish());
  EXPECT_NE(DigestBuilder().Add("").Finish(), DigestBuilder().Finish());
  EXPECT_EQ(DigestBuilder().Add("x").Add(int64_t{7}).Finish(),
            DigestBuilder().Add("x").Add("7").Finish());
}

}  // namespace
}  // namespace assay
