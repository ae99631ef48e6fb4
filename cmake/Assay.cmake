# Targets of this project: warnings, sanitizers and test registration in one place.

add_library(assay_options INTERFACE)
target_include_directories(assay_options INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(assay_options INTERFACE -Wall -Wextra -Wno-unused-parameter)
if(ASSAY_WERROR)
  target_compile_options(assay_options INTERFACE -Werror)
endif()
if(ASSAY_SANITIZE)
  target_compile_options(assay_options INTERFACE
    -fsanitize=${ASSAY_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(assay_options INTERFACE -fsanitize=${ASSAY_SANITIZE})
endif()
# Objects of every program: see base/sanitizer.
set(ASSAY_PROGRAM_OBJECTS)
set(ASSAY_TEST_ENVIRONMENT)
if(ASSAY_SANITIZE MATCHES "thread")
  # Protobuf's headers lay map fields out differently under this macro, and its library is built without.
  target_compile_options(assay_options INTERFACE -U__SANITIZE_THREAD__)
  set(ASSAY_TEST_ENVIRONMENT
    ";TSAN_OPTIONS=ignore_noninstrumented_modules=1:suppressions=${CMAKE_SOURCE_DIR}/base/sanitizer/tsan_suppressions.txt")
  add_library(absl_under_tsan OBJECT ${CMAKE_SOURCE_DIR}/base/sanitizer/absl_under_tsan.cc)
  target_link_libraries(absl_under_tsan PUBLIC assay_options absl::synchronization ${CMAKE_DL_LIBS})
  set(ASSAY_PROGRAM_OBJECTS absl_under_tsan)
endif()

# assay_library(name SRCS a.cc b.cc [DEPS targets])
function(assay_library name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SRCS})
  target_link_libraries(${name} PUBLIC assay_options ${ARG_DEPS})
endfunction()

# assay_binary(name SRCS main.cc [DEPS targets]); lands in <build>/bin.
function(assay_binary name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE assay_options ${ASSAY_PROGRAM_OBJECTS} ${ARG_DEPS})
endfunction()

# assay_test(name SRCS a_test.cc ... [DEPS targets] [LABEL unit] [TIMEOUT 120])
# One GoogleTest binary per folder keeps link time low. The labels are: unit (fast), integration (starts processes),
# simulation, tidy, gpu (needs one). A test that the machine cannot run calls GTEST_SKIP and is reported as skipped.
function(assay_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "SRCS;DEPS" ${ARGN})
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(ASSAY_SANITIZE)
    math(EXPR ARG_TIMEOUT "6 * ${ARG_TIMEOUT}")
  endif()
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE assay_options ${ASSAY_PROGRAM_OBJECTS} ${ARG_DEPS}
    GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT}
    ENVIRONMENT "ASSAY_BIN_DIR=${CMAKE_BINARY_DIR}/bin;ASSAY_SOURCE_DIR=${CMAKE_SOURCE_DIR}${ASSAY_TEST_ENVIRONMENT}")
endfunction()
