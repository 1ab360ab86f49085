// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CLinux
internal import Glibc

/// The socket at which a password agent answers.
struct AgentSocket: ~Copyable {
    private let descriptor: Descriptor

    /// A socket with a name of its own. Whoever may write to it answers; the senders' users are looked at as well.
    init(at path: String) throws(SystemError) {
        descriptor = try Self.bound(to: path)
    }

    /// The first reply that is one, from root or this process's user; `nil` when the time is over first.
    func reply(until deadline: ContinuousClock.Instant) throws(SystemError) -> AskFile.Reply? {
        let number = descriptor.number
        var buffer = [UInt8](repeating: 0, count: AskFile.replyLimit)
        defer { wipe(&buffer) }
        while true {
            let left = (deadline - .now) / .milliseconds(1)
            guard left > 0 else { return nil }
            var waiting = pollfd(fd: number, events: Int16(POLLIN), revents: 0)
            guard try systemCall({ unsafe poll(&waiting, 1, Int32(min(left.rounded(.up), 3_600_000))) }) > 0 else {
                continue
            }
            var sender = UInt32.max
            let count = unsafe clinux_receive_with_uid(number, &buffer, buffer.count, &sender)
            if count == -EINTR || count == -EAGAIN { continue }
            guard count >= 0 else { throw SystemError(code: Int32(truncatingIfNeeded: -count)) }
            guard sender == 0 || sender == geteuid(), count <= buffer.count else { continue }
            var datagram = Array(buffer[0..<count])
            defer { wipe(&datagram) }
            if let reply = AskFile.reply(in: datagram) { return reply }
        }
    }

    /// Answers a question of this process by withdrawing it.
    static func withdraw(_ path: String) {
        guard let descriptor = try? socket() else { return }
        let number = descriptor.number
        let refusal = [UInt8(ascii: "-")]
        guard unsafe (try? withAddress(path, { unsafe connect(number, $0, $1) })) != nil else { return }
        try? descriptor.writeAll(refusal)
    }

    /// Whether nobody holds the socket of that name any more.
    static func isAbandoned(_ path: String) -> Bool {
        do {
            let descriptor = try socket()
            let number = descriptor.number
            unsafe try withAddress(path) { unsafe connect(number, $0, $1) }
            return false
        } catch {
            return error.code == ECONNREFUSED
        }
    }

    private static func bound(to path: String) throws(SystemError) -> Descriptor {
        let descriptor = try socket()
        let number = descriptor.number
        unsafe try withAddress(path) { unsafe bind(number, $0, $1) }
        _ = try systemCall { unsafe chmod(path, 0o600) }
        var on: Int32 = 1
        _ = try systemCall {
            unsafe setsockopt(number, SOL_SOCKET, SO_PASSCRED, &on, socklen_t(MemoryLayout<Int32>.size))
        }
        return descriptor
    }

    private static func socket() throws(SystemError) -> Descriptor {
        let number = clinux_socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue))
        guard number >= 0 else { throw SystemError(code: -number) }
        return Descriptor(owning: number)
    }

    /// Makes `call`, which binds or connects and returns what it returned, with the address of that path.
    private static func withAddress(
        _ path: String, _ call: (UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) throws(SystemError) {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        guard bytes.count < MemoryLayout.size(ofValue: address.sun_path) else {
            throw SystemError(code: ENAMETOOLONG)
        }
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: bytes) }
        let length = socklen_t(MemoryLayout<sockaddr_un>.size)
        let result = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe call($0, length) }
        }
        if result < 0 { throw SystemError(code: errno) }
    }
}
