"""Reads recordings of Linux ``perf record`` (perf.data), and unwinds their samples again by several methods.

The records are those of ``include/uapi/linux/perf_event.h`` (Linux 6.12).  The layout of the file is that of
``tools/perf/Documentation/perf.data-file-format.txt`` and of ``tools/perf/util/event.h`` there.
"""
