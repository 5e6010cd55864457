"""Functions that do not return, by name."""

from __future__ import annotations

import re

_NAMES = frozenset(
    (
        "abort",
        "exit",
        "_exit",
        "_Exit",
        "quick_exit",
        "thrd_exit",
        "pthread_exit",
        "longjmp",
        "_longjmp",
        "siglongjmp",
        "__longjmp_chk",
        "__stack_chk_fail",
        "__stack_chk_fail_local",
        "__assert_fail",
        "__assert",
        "__assert_perror_fail",
        "__assert_fail_base",
        "__chk_fail",
        "__fortify_fail",
        "__libc_fatal",
        "__libc_start_main_impl",
        "err",
        "errx",
        "verr",
        "verrx",
        "__cxa_throw",
        "__cxa_rethrow",
        "__cxa_bad_cast",
        "__cxa_bad_typeid",
        "__cxa_throw_bad_array_new_length",
        "__cxa_pure_virtual",
        "__cxa_call_unexpected",
        "__cxa_call_terminate",
        "__clang_call_terminate",
        "_Unwind_Resume",
        "_ZSt9terminatev",
        "_ZSt10unexpectedv",
        "panic",
        "do_exit",
        "make_task_dead",
        "__fortify_panic",
        "fortify_panic",
        "do_group_exit",
        "rust_begin_unwind",
        "_ZN4llvm25llvm_unreachable_internalEPKcS1_j",
        "_ZN4llvm22report_bad_alloc_errorEPKcb",
    )
)
_PATTERNS = re.compile(
    r"_ZSt\d+__throw_|_ZN4llvm18report_fatal_errorE|_ZN4core9panicking|_ZN4core6option13expect_failed"
    r"|runtime\.(?:throw|fatal|fatalthrow|fatalpanic|gopanic|goPanic\w+"
    r"|panic(?:Index|Slice|divide|dottype|float|make|mem|nildottype|overflow|shift|unsafe|wrap)\w*)(?:\.abi\w+)?$"
)


def is_not_returning(name: str) -> bool:
    """Return whether a function of this name does not return."""
    name = name.partition("@")[0]
    return name in _NAMES or _PATTERNS.match(name) is not None
