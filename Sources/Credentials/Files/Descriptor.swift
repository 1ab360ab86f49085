// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// A file descriptor that closes itself.
struct Descriptor: ~Copyable {
    /// The number.
    let number: Int32

    /// Takes over `number`.
    init(owning number: Int32) {
        self.number = number
    }

    deinit {
        close(number)
    }

    /// Opens `path`; never for a child, never as a controlling terminal. `errno` as the error.
    init(opening path: String, _ flags: Int32, mode: mode_t = 0) throws(SystemError) {
        number = try systemCall { unsafe open(path, flags | O_CLOEXEC | O_NOCTTY, mode) }
    }

    /// What the system says of the open file.
    func status() throws(SystemError) -> stat {
        var status = stat()
        _ = try systemCall { unsafe fstat(number, &status) }
        return status
    }

    /// Reads until the end of the file, or one byte more than `limit`, which tells that there is too much.
    func readAll(limit: Int, expecting: Int = 0) throws(SystemError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: min(max(expecting, 512), limit) + 1)
        var filled = 0
        while filled <= limit {
            if filled == bytes.count {
                var larger = [UInt8](repeating: 0, count: min(bytes.count * 2, limit + 1))
                larger.replaceSubrange(0..<filled, with: bytes)
                wipe(&bytes)
                bytes = larger
            }
            let room = bytes.count - filled
            let got = try systemCall {
                unsafe bytes.withUnsafeMutableBytes { buffer in
                    unsafe read(number, buffer.baseAddress?.advanced(by: filled), room)
                }
            }
            guard got > 0 else { break }
            filled += got
        }
        guard filled < bytes.count else { return bytes }
        let exact = Array(bytes[0..<filled])
        wipe(&bytes)
        return exact
    }

    /// Writes all of `bytes`.
    func writeAll(_ bytes: [UInt8]) throws(SystemError) {
        var written = 0
        while written < bytes.count {
            written += try systemCall {
                unsafe bytes.withUnsafeBytes { buffer in
                    unsafe write(number, buffer.baseAddress?.advanced(by: written), bytes.count - written)
                }
            }
        }
    }
}

/// An error number of the system.
struct SystemError: Error, Equatable {
    let code: Int32
}

/// Repeats `call` while it is interrupted; a negative result is an error.
func systemCall<Result: FixedWidthInteger>(_ call: () -> Result) throws(SystemError) -> Result {
    while true {
        let result = call()
        if result >= 0 { return result }
        let code = errno
        if code != EINTR { throw SystemError(code: code) }
    }
}

/// Overwrites bytes that were secret.
func wipe(_ bytes: inout [UInt8]) {
    unsafe bytes.withUnsafeMutableBytes { buffer in
        guard let start = buffer.baseAddress else { return }
        unsafe explicit_bzero(start, buffer.count)
    }
}
