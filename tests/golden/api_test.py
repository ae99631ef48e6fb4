#!/usr/bin/env python3
"""The public API only grows: compares every field, enum value and method of proto/assay/v1 with tests/golden/api.txt.

    api_test.py SOURCE_DIR             fails when something of api.txt is gone or changed, or when something new is missing in it
    api_test.py SOURCE_DIR --update    rewrites api.txt (refused when it would drop or change a line)
"""

import glob
import os
import subprocess
import sys
import tempfile


def parse_text_format(text):
    """Protobuf text format as nested lists of (name, value)."""
    stack = [[]]
    for line in text.splitlines():
        line = line.strip()
        if line.endswith("{"):
            child = []
            stack[-1].append((line[:-1].strip(), child))
            stack.append(child)
        elif line == "}":
            stack.pop()
        elif line:
            name, value = line.split(":", 1)
            stack[-1].append((name, value.strip().strip('"')))
    return stack[0]


def values(message, name):
    return [value for key, value in message if key == name]


def first(message, name, default=""):
    return (values(message, name) or [default])[0]


def describe_message(prefix, message):
    name = prefix + "." + first(message, "name")
    for field in values(message, "field"):
        yield "field %s.%s = %s %s %s" % (name, first(field, "name"), first(field, "number"), first(field, "label"),
                                          first(field, "type_name") or first(field, "type"))
    for nested in values(message, "nested_type"):
        yield from describe_message(name, nested)
    for enum in values(message, "enum_type"):
        yield from describe_enum(name, enum)


def describe_enum(prefix, enum):
    name = prefix + "." + first(enum, "name")
    for value in values(enum, "value"):
        yield "value %s.%s = %s" % (name, first(value, "name"), first(value, "number"))


def describe(root):
    protos = sorted(os.path.relpath(path, os.path.join(root, "proto"))
                    for path in glob.glob(os.path.join(root, "proto", "assay", "v1", "*.proto")))
    with tempfile.TemporaryDirectory() as directory:
        out = os.path.join(directory, "api.bin")
        subprocess.run(["protoc", "-I", os.path.join(root, "proto"), "--descriptor_set_out=" + out, *protos], check=True)
        with open(out, "rb") as file:
            text = subprocess.run(["protoc", "--decode=google.protobuf.FileDescriptorSet",
                                   "google/protobuf/descriptor.proto"], stdin=file, stdout=subprocess.PIPE,
                                  check=True).stdout.decode()
    lines = []
    for proto in values(parse_text_format(text), "file"):
        package = first(proto, "package")
        for message in values(proto, "message_type"):
            lines.extend(describe_message(package, message))
        for enum in values(proto, "enum_type"):
            lines.extend(describe_enum(package, enum))
        for service in values(proto, "service"):
            for method in values(service, "method"):
                lines.append("rpc %s.%s.%s (%s) returns (%s)%s" % (
                    package, first(service, "name"), first(method, "name"), first(method, "input_type"),
                    first(method, "output_type"), " stream" if first(method, "server_streaming") else ""))
    return sorted(lines)


def main():
    root = sys.argv[1]
    path = os.path.join(root, "tests", "golden", "api.txt")
    now = describe(root)
    try:
        with open(path, encoding="utf-8") as file:
            golden = file.read().splitlines()
    except FileNotFoundError:
        golden = []
    gone = [line for line in golden if line not in now]
    new = [line for line in now if line not in golden]
    if "--update" in sys.argv and not gone:
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(now) + "\n")
        print("%d lines, %d new" % (len(now), len(new)))
        return 0
    for line in gone:
        print("gone or changed: " + line)
    for line in new:
        print("not in api.txt (run tests/golden/api_test.py . --update): " + line)
    print("%d lines compared" % len(now))
    return 1 if gone or new or not now else 0


if __name__ == "__main__":
    sys.exit(main())
