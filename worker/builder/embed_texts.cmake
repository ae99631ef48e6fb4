# Makes OUTPUT, which defines kCudaHeaders, of the files in FOLDER.
# cmake -DFOLDER=... -DOUTPUT=... -P embed_texts.cmake
file(GLOB_RECURSE paths LIST_DIRECTORIES false "${FOLDER}/*")
list(SORT paths)
set(text "#include \"worker/builder/cuda_headers.h\"\n\nnamespace assay {\n\nconst CudaHeader kCudaHeaders[] = {\n")
foreach(path IN LISTS paths)
  file(RELATIVE_PATH name "${FOLDER}" "${path}")
  file(READ "${path}" content)
  string(APPEND text "{\"${name}\", R\"assay(${content})assay\"},\n")
endforeach()
string(APPEND text "};\nconst size_t kCudaHeaderCount = sizeof(kCudaHeaders) / sizeof(kCudaHeaders[0]);\n\n}  // namespace assay\n")
file(WRITE "${OUTPUT}" "${text}")
