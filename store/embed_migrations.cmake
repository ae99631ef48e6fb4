# cmake -DOUTPUT=x.cc -DFOLDER=migrations -P embed_migrations.cmake
# Writes every NNNN_slug.sql, in order, into one C++ source. The numbers must be 1, 2, 3, ...
file(GLOB files "${FOLDER}/*.sql")
list(SORT files)
set(entries "")
set(expected 1)
foreach(file ${files})
  get_filename_component(name "${file}" NAME)
  if(NOT name MATCHES "^([0-9][0-9][0-9][0-9])_[a-z0-9_]+\\.sql$")
    message(FATAL_ERROR "migration ${name} is not called NNNN_slug.sql")
  endif()
  math(EXPR number "1${CMAKE_MATCH_1} - 10000")
  if(NOT number EQUAL expected)
    message(FATAL_ERROR "migration ${name} should have the number ${expected}")
  endif()
  math(EXPR expected "${expected} + 1")
  file(READ "${file}" sql)
  string(APPEND entries "    {${number}, \"${name}\", R\"~~~(${sql})~~~\"},\n")
endforeach()
file(WRITE "${OUTPUT}" "// Generated from store/migrations by embed_migrations.cmake.
#include \"store/sqlite/migrate.h\"

namespace assay {

absl::Span<const Migration> Migrations() {
  static constexpr Migration kMigrations[] = {
${entries}  };
  return kMigrations;
}

}  // namespace assay
")
