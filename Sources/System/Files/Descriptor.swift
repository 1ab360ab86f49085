// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
package import Glibc

/// A file descriptor that closes itself.
package struct Descriptor: ~Copyable {
    /// The number.
    package let number: Int32

    /// Takes over `number`.
    package init(owning number: Int32) {
        self.number = number
    }

    deinit {
        close(number)
    }

    /// Opens `path`; never for a child, never as a controlling terminal. `errno` as the error.
    package init(opening path: String, _ flags: Int32, mode: mode_t = 0) throws(SystemError) {
        number = try systemCall { unsafe open(path, flags | O_CLOEXEC | O_NOCTTY, mode) }
    }

    /// Returns the status of the open file (fstat(2)).
    package func status() throws(SystemError) -> stat {
        var status = stat()
        _ = try systemCall { unsafe fstat(number, &status) }
        return status
    }

    /// Reads to the end of the file, or one byte more than `limit` if the file is longer.
    package func readAll(limit: Int, expecting: Int = 0) throws(SystemError) -> [UInt8] {
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
    package func writeAll(_ bytes: [UInt8]) throws(SystemError) { try DescriptorIO.writeAll(bytes.span, to: number) }

    /// Returns the number; the caller closes it from now on.
    package consuming func release() -> Int32 {
        let number = number
        discard self
        return number
    }
}

/// Reads from and writes to descriptors that have another owner. Interrupted calls are repeated.
package enum DescriptorIO {
    /// Writes the beginning of `bytes`; returns the number of bytes written.
    package static func write(_ bytes: Span<UInt8>, to descriptor: Int32) throws(SystemError) -> Int {
        try systemCall {
            unsafe bytes.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
        }
    }

    /// Writes all of `bytes` to a blocking descriptor.
    package static func writeAll(_ bytes: Span<UInt8>, to descriptor: Int32) throws(SystemError) {
        var written = 0
        while written < bytes.count {
            let count = try write(bytes.extracting(written...), to: descriptor)
            guard count > 0 else { throw SystemError(code: EIO) }
            written += count
        }
    }

    /// Reads the available bytes, at most `limit`. Empty at the end of the file.
    package static func read(from descriptor: Int32, atMost limit: Int) throws(SystemError) -> [UInt8] {
        unsafe try filled(limit) { unsafe Glibc.read(descriptor, $0, $1) }
    }

    /// Reads at most `limit` bytes from `offset` on. Empty at the end of the file.
    package static func read(
        from descriptor: Int32, at offset: Int, atMost limit: Int
    ) throws(SystemError) -> [UInt8] {
        unsafe try filled(limit) { unsafe pread(descriptor, $0, $1, off_t(offset)) }
    }

    /// Sends all of `bytes` on a blocking socket, without SIGPIPE if the peer has closed; returns true if they were
    /// accepted.
    package static func sendAll(_ bytes: Span<UInt8>, on socket: Int32) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = unsafe bytes.extracting(sent...).withUnsafeBytes { rest in
                unsafe Glibc.send(socket, rest.baseAddress, rest.count, Int32(MSG_NOSIGNAL))
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }

    /// Receives until the peer closes, the socket's time limit passes or there are `limit` bytes.
    package static func receiveAll(from socket: Int32, atMost limit: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < limit {
            guard let more = try? read(from: socket, atMost: min(65_536, limit - bytes.count)), !more.isEmpty else {
                break
            }
            bytes += more
        }
        return bytes
    }

    /// Waits until a descriptor accepts bytes or has failed, for at most `limit`; without a limit if nil.
    ///
    /// Returns false if the time is over.
    package static func waitUntilWritable(_ descriptor: Int32, within limit: Duration?) throws(SystemError) -> Bool {
        var wanted = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        return try systemCall { unsafe poll(&wanted, 1, limit?.pollTimeout ?? -1) } > 0
    }

    /// Waits until a descriptor has bytes, has ended or has failed, for at most `limit`.
    ///
    /// Returns false if the time is over.
    package static func waitUntilReadable(_ descriptor: Int32, within limit: Duration) throws(SystemError) -> Bool {
        var wanted = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return try systemCall { unsafe poll(&wanted, 1, limit.pollTimeout) } > 0
    }

    /// Waits until one of several descriptors has bytes, has ended or has failed; returns which have. Waits for at most
    /// `limit`, without a limit if nil. A negative descriptor is skipped.
    package static func waitUntilReadable(
        anyOf descriptors: [Int32], within limit: Duration?
    ) throws(SystemError) -> [Bool] {
        var waiting = descriptors.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        try systemCall { unsafe poll(&waiting, nfds_t(waiting.count), limit?.pollTimeout ?? -1) }
        return waiting.map { $0.revents != 0 }
    }

    private static func filled(
        _ limit: Int, _ read: (UnsafeMutableRawPointer?, Int) -> Int
    ) throws(SystemError) -> [UInt8] {
        var failure: SystemError?
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: limit) { buffer, count in
            do throws(SystemError) {
                count = try systemCall { unsafe read(buffer.baseAddress, limit) }
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        return bytes
    }
}
