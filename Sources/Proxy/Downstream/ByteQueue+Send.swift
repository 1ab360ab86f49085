// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import HTTPWire

extension ByteQueue {
    /// Sends what waits until all of it has gone; then memory of more than `kept` bytes is given back. Returns 0, or the
    /// error number that ended it before: EAGAIN where the socket takes no more for now.
    ///
    /// All in one call, since each access to a queue that is an object's property is checked for exclusivity.
    mutating func send(to descriptor: Int32, keepingCapacity kept: Int) -> Int32 {
        while !isEmpty {
            let sent = unsafe withUnsafeBytes { bytes in
                unsafe Glibc.send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
            }
            if sent > 0 {
                consume(sent)
            } else if errno != EINTR {
                return errno
            }
        }
        removeAll(keepingCapacity: kept)
        return 0
    }
}
