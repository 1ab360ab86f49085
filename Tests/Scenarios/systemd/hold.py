#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""hold.py THREAD: stops one thread by ptrace(2) until this process ends; SIGSTOP would stop the whole process."""
from ctypes import CDLL, c_long, get_errno
from os import waitpid
from sys import argv
libc = CDLL(None, use_errno=True)
libc.ptrace.argtypes = [c_long] * 4
thread, seize, interrupt, wall = int(argv[1]), 0x4206, 0x4207, 0x40000000
for request in (seize, interrupt):
    if libc.ptrace(request, thread, 0, 0) != 0: raise OSError(get_errno(), "ptrace")
# Once when the thread is stopped, once when it has ended.
waitpid(thread, wall)
waitpid(thread, wall)
