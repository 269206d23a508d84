"""Record and results to disk and back; loads without torch."""

from headscope.storage._document import PAIR, Finite, Seed, check_document
from headscope.storage._file_array import FileArray
from headscope.storage._record_file import (
    NoRecord,
    check_record,
    load,
    record_of,
    record_parts,
    save,
)
from headscope.storage._record_folder import INDEX, RECORDS, IndexLine, RecordFolder, write_index
from headscope.storage._safetensors import (
    RECORD,
    RecordFile,
    kind_of,
    load_kept,
    load_stored,
    save_kept,
)
from headscope.storage._temporary_arrays import BoundedArrays, CapturedArrays
from headscope.storage.atomic import (
    check_parent,
    fetched,
    is_address,
    local_path,
    saved_at,
    written_whole,
)
from headscope.storage.npz import UNREADABLE, array_of, arrays_below, read_npz, reading, words_of
from headscope.storage.rows import (
    FIRST,
    SECOND,
    SUFFIXES,
    given_labels,
    given_pairs,
    names_file,
    place_of,
    read_groups,
    read_rows,
    read_texts,
    wrong_field,
)

__all__ = [
    "FIRST",
    "INDEX",
    "PAIR",
    "RECORD",
    "RECORDS",
    "SECOND",
    "SUFFIXES",
    "UNREADABLE",
    "BoundedArrays",
    "CapturedArrays",
    "FileArray",
    "Finite",
    "IndexLine",
    "NoRecord",
    "RecordFile",
    "RecordFolder",
    "Seed",
    "array_of",
    "arrays_below",
    "check_document",
    "check_parent",
    "check_record",
    "fetched",
    "given_labels",
    "given_pairs",
    "is_address",
    "kind_of",
    "load",
    "load_kept",
    "load_stored",
    "local_path",
    "names_file",
    "place_of",
    "read_groups",
    "read_npz",
    "read_rows",
    "read_texts",
    "reading",
    "record_of",
    "record_parts",
    "save",
    "save_kept",
    "saved_at",
    "words_of",
    "write_index",
    "written_whole",
    "wrong_field",
]
