// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CLinux
internal import Glibc
internal import Secrets
internal import System

/// The socket for the answer of a password agent.
struct AgentSocket: ~Copyable {
    private let descriptor: Descriptor

    /// Creates a socket at that path, accessible to root and this process's user. The sender's user is checked as well.
    init(at path: String) throws(SystemError) {
        descriptor = try Self.bound(to: path)
    }

    /// Returns the first valid reply from root or this process's user; `nil` at the deadline.
    func reply(until deadline: ContinuousClock.Instant) throws(SystemError) -> AskFile.Reply? {
        let number = descriptor.number
        var buffer = [UInt8](repeating: 0, count: AskFile.replyLimit)
        defer { wipe(&buffer) }
        while true {
            let left = deadline - .now
            guard left > .zero else { return nil }
            guard try DescriptorIO.waitUntilReadable(number, within: min(left, .seconds(3600))) else { continue }
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

    /// Withdraws a question of this process with an answer to its own socket.
    static func withdraw(_ path: String) {
        guard let address = SocketAddress(unixPath: path), let descriptor = try? socket() else { return }
        guard (try? address.connect(descriptor.number)) != nil else { return }
        try? descriptor.writeAll([UInt8(ascii: "-")])
    }

    /// Returns true if no process has the socket at that path open.
    static func isAbandoned(_ path: String) -> Bool {
        do throws(SystemError) {
            let descriptor = try socket()
            try address(of: path).connect(descriptor.number)
            return false
        } catch {
            return error.code == ECONNREFUSED
        }
    }

    private static func bound(to path: String) throws(SystemError) -> Descriptor {
        let descriptor = try socket()
        try SocketPath.bind(descriptor.number, to: path, mode: 0o600)
        try Sockets.passCredentials(descriptor.number)
        return descriptor
    }

    private static func socket() throws(SystemError) -> Descriptor {
        Descriptor(owning: try Sockets.makeNonblocking(AF_UNIX, isDatagram: true))
    }

    private static func address(of path: String) throws(SystemError) -> SocketAddress {
        guard let address = SocketAddress(unixPath: path) else { throw SystemError(code: ENAMETOOLONG) }
        return address
    }
}

/// A question file of the systemd Password Agent Specification, and its reply (systemd.io/PASSWORD_AGENTS).
struct AskFile: Equatable {
    /// A reply of an agent.
    enum Reply: Equatable {
        /// The typed answer.
        case answer(Secret)
        /// The person cancelled the prompt, or typed nothing.
        case withdrawn
    }

    /// The maximum length of a reply datagram, in bytes.
    static let replyLimit = 4096

    /// The question for the person.
    var message: String
    /// The key under which an agent may cache the answer.
    var id: String
    /// The path of the socket for the answer.
    var socket: String
    /// The asking process; agents ignore the question after its end.
    var process: Int32
    /// The end of the question, in microseconds of CLOCK_MONOTONIC.
    var notAfter: UInt64

    /// The text of the file. Line breaks and other control characters are removed from each value.
    var text: String {
        """
        [Ask]
        PID=\(process)
        Socket=\(Self.line(socket))
        AcceptCached=0
        Echo=0
        Silent=0
        NotAfter=\(notAfter)
        Message=\(Self.line(message))
        Icon=dialog-password
        Id=\(Self.line(id))

        """
    }

    /// Parses a datagram; `nil` if it is not a reply.
    ///
    /// `+` precedes answers that each end with a zero byte, of which the first counts. `-` withdraws the question.
    static func reply(in datagram: [UInt8]) -> Reply? {
        switch datagram.first {
        case UInt8(ascii: "+"):
            let answer = datagram.dropFirst().prefix { $0 != 0 }
            return answer.isEmpty ? .withdrawn : .answer(Secret(answer))
        case UInt8(ascii: "-"): return .withdrawn
        default: return nil
        }
    }

    private static func line(_ text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.filter { $0.value >= 0x20 && $0.value != 0x7F }))
    }
}
