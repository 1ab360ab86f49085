// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// The words of `strerror` for `errno`, and its number.
func systemMessage(_ errno: Int32) -> String {
    let words = unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { bytes -> String? in
        guard let start = bytes.baseAddress, unsafe strerror_r(errno, start, bytes.count) == 0 else { return nil }
        return unsafe String(cString: start)
    }
    return "\(words ?? "unknown error") (errno \(errno))"
}
