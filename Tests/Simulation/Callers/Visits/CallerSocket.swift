// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc

/// The caller's end of a connection, examined without reading from it.
enum CallerSocket {
    /// The daemon's end, as far as it can be seen.
    enum Look {
        /// It is open, and nothing has come that is not read.
        case quiet
        /// Bytes have arrived; what follows them cannot be seen.
        case speaking
        /// It is closed.
        case over
    }

    /// Looks at a connection.
    static func look(at descriptor: Int32) -> Look {
        var byte: UInt8 = 0
        let count = unsafe recv(descriptor, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT))
        if count > 0 { return .speaking }
        return count < 0 && errno == EAGAIN ? .quiet : .over
    }

    /// Sends all of a short message. Returns false if it could not be sent.
    static func send(_ bytes: [UInt8], on descriptor: Int32) -> Bool {
        let sent = unsafe bytes.withUnsafeBytes {
            unsafe Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
        }
        return sent == bytes.count
    }

    /// Returns the bytes received; empty at the end, `nil` if nothing has arrived yet.
    static func receive(from descriptor: Int32) -> [UInt8]? {
        let limit = 65_536
        var isOver = false
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: limit) { space, count in
            let received = unsafe recv(descriptor, space.baseAddress, limit, Int32(MSG_DONTWAIT))
            count = max(0, received)
            isOver = received == 0 || (received < 0 && errno != EAGAIN)
        }
        return bytes.isEmpty && !isOver ? nil : bytes
    }
}
