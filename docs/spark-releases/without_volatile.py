"""Copy a Spark installation; in the copy, the class UTF8String has no volatile fields.

    python without_volatile.py SPARK_HOME NEW_HOME

This shows what the fields cost, and is for nothing else. In the class file, the flag ACC_VOLATILE
of each field is cleared (The Java Virtual Machine Specification, 4.5).
"""

import shutil
import struct
import sys
import zipfile
from pathlib import Path

CLASS = "org/apache/spark/unsafe/types/UTF8String.class"
ACC_VOLATILE = 0x0040
UTF8, TWO_PLACES = 1, (5, 6)  # tags of the constant pool: texts; longs and doubles
SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 15: 3, 16: 2, 19: 2, 20: 2}  # others: 4 bytes


def without_volatile(code: bytearray) -> int:
    """Clear the flag in a class file; return how many fields had it."""
    (constants,) = struct.unpack_from(">H", code, 8)
    at, constant = 10, 1
    while constant < constants:
        tag = code[at]
        size = 2 + struct.unpack_from(">H", code, at + 1)[0] if tag == UTF8 else SIZES.get(tag, 4)
        at += 1 + size
        constant += 2 if tag in TWO_PLACES else 1
    (interfaces,) = struct.unpack_from(">H", code, at + 6)
    at += 8 + 2 * interfaces
    (fields,) = struct.unpack_from(">H", code, at)
    at, cleared = at + 2, 0
    for _ in range(fields):
        flags, _, _, attributes = struct.unpack_from(">4H", code, at)
        struct.pack_into(">H", code, at, flags & ~ACC_VOLATILE)
        cleared += bool(flags & ACC_VOLATILE)
        at += 8
        for _ in range(attributes):
            at += 6 + struct.unpack_from(">I", code, at + 2)[0]
    return cleared


old, new = map(Path, sys.argv[1:])
shutil.copytree(old, new, symlinks=True)
(jar,) = (new / "jars").glob("spark-unsafe_*.jar")
changed = jar.with_suffix(".changed")
with zipfile.ZipFile(jar) as before, zipfile.ZipFile(changed, "w") as after:
    for entry in before.infolist():
        content = bytearray(before.read(entry))
        if entry.filename == CLASS:
            print(f"{jar.name}: {without_volatile(content)} fields of UTF8String were volatile")
        after.writestr(entry, bytes(content))
changed.replace(jar)
