// Authorities and certificates for tests of TLS, made anew by each test.
#ifndef ASSAY_SERVER_ACCESS_TEST_CERTIFICATES_H_
#define ASSAY_SERVER_ACCESS_TEST_CERTIFICATES_H_

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>

namespace assay {

// A certificate in PEM with its key.
struct TestCertificate {
  std::string pem;
  std::string key_pem;
  std::shared_ptr<X509> certificate;
  std::shared_ptr<EVP_PKEY> key;
};

namespace internal_test {

template <typename Write>
std::string ToPem(const Write& write) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new(BIO_s_mem()), BIO_free);
  write(bio.get());
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

inline void AddExtension(int nid, const char* value, X509* issuer, X509* certificate) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

}  // namespace internal_test

// Signed by `issuer`, or, when that is null, an authority. Valid for this machine for a day.
inline TestCertificate MakeTestCertificate(const std::string& name, const TestCertificate* issuer) {
  using internal_test::AddExtension;
  using internal_test::ToPem;
  TestCertificate made;
  made.key.reset(EVP_EC_gen("P-256"), EVP_PKEY_free);
  made.certificate.reset(X509_new(), X509_free);
  X509* const certificate = made.certificate.get();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), static_cast<long>(name.size()) + 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 86'400);
  X509_set_pubkey(certificate, made.key.get());
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509* const authority = issuer != nullptr ? issuer->certificate.get() : certificate;
  X509_set_issuer_name(certificate, X509_get_subject_name(authority));
  if (issuer == nullptr) {
    AddExtension(NID_basic_constraints, "critical,CA:TRUE", authority, certificate);
  } else {
    AddExtension(NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1", authority, certificate);
  }
  X509_sign(certificate, issuer != nullptr ? issuer->key.get() : made.key.get(), EVP_sha256());
  made.pem = ToPem([&](BIO* bio) { PEM_write_bio_X509(bio, certificate); });
  made.key_pem = ToPem([&](BIO* bio) {
    PEM_write_bio_PrivateKey(bio, made.key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
  return made;
}

}  // namespace assay

#endif  // ASSAY_SERVER_ACCESS_TEST_CERTIFICATES_H_
