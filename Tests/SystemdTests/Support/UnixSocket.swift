// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// A Unix socket bound to its own path, as the service manager and journald have one.
@safe
final class UnixSocket {
    let descriptor: Int32
    let path: String

    init(_ type: __socket_type, path: String) throws {
        self.path = path
        descriptor = socket(AF_UNIX, Int32(type.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        let fits = unsafe withUnsafeMutableBytes(of: &address.sun_path) { room -> Bool in
            guard bytes.count < room.count else { return false }
            unsafe room.copyBytes(from: bytes)
            return true
        }
        guard fits else { throw SocketError(what: "the path \(path) is too long") }
        let bound = unsafe withUnsafePointer(to: &address) { address in
            unsafe address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                unsafe bind(descriptor, address, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard bound == 0 else { throw SocketError(what: "bind \(path): errno \(errno)") }
    }

    /// Creates a socket in a new directory.
    convenience init(_ type: __socket_type) throws {
        var template = Array("/tmp/countersign-test-XXXXXX".utf8CString)
        let directory = unsafe template.withUnsafeMutableBufferPointer { template -> String? in
            guard let start = template.baseAddress, unsafe mkdtemp(start) != nil else { return nil }
            return unsafe String(cString: start)
        }
        guard let directory else { throw SocketError(what: "mkdtemp: errno \(errno)") }
        try self.init(type, path: directory + "/socket")
    }

    deinit {
        _ = close(descriptor)
        _ = unsafe unlink(path)
        if let slash = path.lastIndex(of: "/") { _ = unsafe rmdir(String(path[..<slash])) }
    }

    /// Returns the next datagram, which must have arrived already.
    func received() -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: 64 * 1024)
        let count = unsafe recv(descriptor, &bytes, bytes.count, Int32(MSG_DONTWAIT))
        return count < 0 ? nil : Array(bytes[..<count])
    }

    /// Returns the next datagram as text.
    func receivedText() -> String? {
        received().map { String(decoding: $0, as: UTF8.self) }
    }
}

/// Sets an environment variable, or removes it if `value` is nil. Only for tests that run in their own process.
func setVariable(_ name: String, _ value: String?) {
    if let value {
        unsafe setenv(name, value, 1)
    } else {
        unsafe unsetenv(name)
    }
}

struct SocketError: Error {
    let what: String
}
