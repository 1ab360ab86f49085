// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// Addresses of sockets as the kernel wants them: the bytes of a `sockaddr` of whatever family.
enum SocketAddress {
    /// That of a Unix socket; `nil` for a path that is too long.
    static func unix(_ path: String) -> [UInt8]? {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        let fits = unsafe withUnsafeMutableBytes(of: &address.sun_path) { field in
            guard bytes.count < field.count else { return false }
            unsafe field.copyBytes(from: bytes)
            return true
        }
        return fits ? unsafe withUnsafeBytes(of: &address) { unsafe Array($0) } : nil
    }

    /// Connects a socket to an address; returns the error number, or 0.
    static func connect(_ descriptor: Int32, to address: [UInt8]) -> Int32 {
        unsafe address.withUnsafeBytes { bytes in
            guard let address = unsafe bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self) else { return EINVAL }
            return unsafe Glibc.connect(descriptor, address, socklen_t(bytes.count)) == 0 ? 0 : errno
        }
    }
}
