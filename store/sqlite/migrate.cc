#include "store/sqlite/migrate.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "assay/v1/evaluation.pb.h"
#include "assay/v1/fleet.pb.h"
#include "base/status.h"
#include "base/strings.h"

namespace assay {
namespace {

absl::Status ApplyMigration(Connection& connection, const Migration& migration) {
  ASSAY_RETURN_IF_ERROR(connection.Execute("BEGIN IMMEDIATE"));
  absl::Status status = connection.Execute(migration.sql);
  if (status.ok()) {
    status = connection.Execute(absl::StrCat("PRAGMA user_version = ", migration.version));
  }
  if (status.ok()) status = connection.Execute("COMMIT");
  if (!status.ok() && connection.in_transaction()) {
    // The first error is the one to report.
    connection.Execute("ROLLBACK").IgnoreError();
  }
  return Annotate(status, absl::StrCat("migration ", migration.name));
}

absl::Status InsertNames(Connection& connection, std::string_view kind,
                         const google::protobuf::EnumDescriptor* descriptor) {
  for (int i = 0; i < descriptor->value_count(); ++i) {
    ASSAY_ASSIGN_OR_RETURN(
        ScopedStatement insert,
        connection.Cached("INSERT INTO enum_names (kind, number, name) VALUES (?1, ?2, ?3)"
                          " ON CONFLICT (kind, number) DO UPDATE SET name = excluded.name"
                          " WHERE name <> excluded.name"));
    insert->BindText(1, kind);
    insert->BindInt(2, descriptor->value(i)->number());
    insert->BindText(3, descriptor->value(i)->name());
    ASSAY_RETURN_IF_ERROR(insert->Run());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Migrate(Connection& connection, absl::Span<const Migration> migrations) {
  ASSAY_ASSIGN_OR_RETURN(const int64_t version, connection.QueryInt("PRAGMA user_version"));
  const int newest = migrations.empty() ? 0 : migrations.back().version;
  if (version > newest) {
    return ErrorWithReason(
        absl::StatusCode::kFailedPrecondition, "SCHEMA_TOO_NEW",
        absl::StrCat("the database has schema version ", version, ", this release knows ", newest,
                     "; start the release that wrote it, or a newer one"));
  }
  for (const Migration& migration : migrations) {
    if (migration.version <= version) continue;
    ASSAY_RETURN_IF_ERROR(ApplyMigration(connection, migration));
  }
  return absl::OkStatus();
}

absl::Status WriteEnumNames(Connection& connection) {
  ASSAY_RETURN_IF_ERROR(connection.Execute("BEGIN IMMEDIATE"));
  absl::Status status = InsertNames(connection, "state", v1::State_descriptor());
  if (status.ok()) status = InsertNames(connection, "verdict", v1::Verdict_descriptor());
  if (status.ok()) status = InsertNames(connection, "level", v1::Level_descriptor());
  if (status.ok()) status = InsertNames(connection, "worker_state", v1::Worker::State_descriptor());
  if (status.ok()) status = connection.Execute("COMMIT");
  if (!status.ok() && connection.in_transaction()) connection.Execute("ROLLBACK").IgnoreError();
  return status;
}

}  // namespace assay
