// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// Looks up the library's own function of a name that this program defines, too (RTLD_NEXT).
///
/// The dynamic linker finds symbols of the program before those of libraries (ld.so(8)): libcurl calls the program's
/// function, which calls the one returned here.
func libraryFunction<Function>(_ name: String, as type: Function.Type) -> Function? {
    guard let symbol = unsafe dlsym(UnsafeMutableRawPointer(bitPattern: -1), name) else { return nil }
    return unsafe unsafeBitCast(symbol, to: type)
}
