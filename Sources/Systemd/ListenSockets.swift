// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CSystemd
internal import Glibc
internal import System

/// Listening sockets passed by the service manager (`sd_listen_fds(3)`), by `FileDescriptorName=`.
///
/// Several sockets may share one name (`ListenStream=` twice in one unit). The descriptors belong to the code that
/// claims them; this value closes none of them.
package struct ListenSockets: Equatable, Sendable {
    /// Descriptors by name, in the order of the socket unit.
    package let descriptors: [String: [Int32]]

    /// Creates the value from known sockets: those taken earlier, or an empty list.
    package init(descriptors: [String: [Int32]] = [:]) {
        self.descriptors = descriptors
    }

    /// Names of the passed sockets, sorted.
    package var names: [String] { descriptors.keys.sorted() }

    /// Takes over the sockets from the service manager.
    ///
    /// Call once, before any thread is started: this removes `LISTEN_FDS`, `LISTEN_PID` and `LISTEN_FDNAMES` from the
    /// environment, so that no helper started later mistakes them for its own. Every socket is set to close-on-exec and
    /// non-blocking, and checked to be a listening stream socket.
    ///
    /// - Parameter stored: the name of the manager's stored descriptors, which are not sockets.
    /// - Returns: no sockets if the process was not activated by a socket; and the stored descriptors, closed on exec.
    package static func take(
        stored: DescriptorName? = nil
    ) throws(ListenSocketsError) -> (sockets: ListenSockets, stored: [Int32]) {
        var result: [String: [Int32]] = [:]
        var kept: [Int32] = []
        for (descriptor, name) in try inherited() {
            if name == stored?.rawValue, try isFile(descriptor, name) {
                _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
                kept.append(descriptor)
                continue
            }
            try prepare(descriptor, name)
            result[name, default: []].append(descriptor)
        }
        return (ListenSockets(descriptors: result), kept)
    }

    /// Returns the sockets for the listeners that the configuration calls `systemd:NAME`.
    ///
    /// - Parameter configured: each NAME of the configuration.
    /// - Throws: if a name was not passed, or if a passed name is not configured, because callers of a socket without
    ///   an acceptor would wait forever.
    package func claim(_ configured: [String]) throws(ListenSocketsError) -> [String: [Int32]] {
        let wanted = Set(configured)
        let passed = Set(descriptors.keys)
        guard wanted == passed else {
            throw .mismatch(configured: wanted.sorted(), passed: passed.sorted())
        }
        return descriptors
    }
}

/// Returns the descriptors that `sd_listen_fds_with_names` passed, in order.
private func inherited() throws(ListenSocketsError) -> [(descriptor: Int32, name: String)] {
    var names: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
    let count = unsafe sd_listen_fds_with_names(1, &names)
    defer { unsafe free(names) }
    guard count >= 0 else { throw .refused(errno: 0 &- count) }
    var result: [(descriptor: Int32, name: String)] = []
    for index in 0..<Int(count) {
        // The caller must free the array and each name in it.
        let name = unsafe names?[index]
        defer { unsafe free(name) }
        let text = unsafe name.map { unsafe String(cString: $0) } ?? "unknown"
        result.append((descriptor: SD_LISTEN_FDS_START + Int32(index), name: text))
    }
    return result
}

private func isFile(_ descriptor: Int32, _ name: String) throws(ListenSocketsError) -> Bool {
    do throws(SystemError) {
        return try FileSystem.status(of: descriptor).st_mode & S_IFMT == S_IFREG
    } catch {
        throw .unusable(name: name, descriptor: descriptor, errno: error.code)
    }
}

private func prepare(_ descriptor: Int32, _ name: String) throws(ListenSocketsError) {
    let answer = sd_is_socket(descriptor, AF_UNSPEC, Int32(SOCK_STREAM.rawValue), 1)
    if answer < 0 { throw .unusable(name: name, descriptor: descriptor, errno: 0 &- answer) }
    guard answer > 0 else { throw .notListening(name: name, descriptor: descriptor) }
    // sd_listen_fds sets this flag too; repeated here because everything started later depends on it.
    guard fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0 else {
        throw .unusable(name: name, descriptor: descriptor, errno: errno)
    }
    let flags = fcntl(descriptor, F_GETFL)
    guard flags >= 0, fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) == 0 else {
        throw .unusable(name: name, descriptor: descriptor, errno: errno)
    }
}

/// Reasons why the service manager's sockets cannot be used.
package enum ListenSocketsError: Error, Equatable, Sendable, CustomStringConvertible {
    /// `sd_listen_fds_with_names` failed with that `errno`.
    case refused(errno: Int32)
    /// The descriptor of that name is not a listening stream socket.
    case notListening(name: String, descriptor: Int32)
    /// The status of the descriptor of that name cannot be read, or a flag of it cannot be set.
    case unusable(name: String, descriptor: Int32, errno: Int32)
    /// The configuration and the socket unit name different sockets; both lists are sorted.
    case mismatch(configured: [String], passed: [String])

    /// True if the cause may pass by itself.
    package var mayPass: Bool {
        switch self {
        case .refused(let errno), .unusable(_, _, let errno): SystemError(code: errno).mayPass
        case .mismatch, .notListening: false
        }
    }

    /// Description of the problem, with its remedy.
    package var description: String {
        switch self {
        case .refused(let errno):
            "the sockets of the service manager cannot be taken: \(SystemError.numberedMessage(errno))"
                + (mayPass ? "" : "; LISTEN_FDS, LISTEN_PID or LISTEN_FDNAMES is damaged")
        case .notListening(let name, let descriptor):
            "the socket \(quoted(name)) (descriptor \(descriptor)) passed by the service manager is not a listening stream "
                + "socket; the socket unit needs ListenStream= and Accept=no"
        case .unusable(let name, let descriptor, let errno):
            "the socket \(quoted(name)) (descriptor \(descriptor)) passed by the service manager cannot be used: "
                + SystemError.numberedMessage(errno)
        case .mismatch(let configured, let passed):
            mismatchDescription(configured, passed)
        }
    }
}

private func mismatchDescription(_ configured: [String], _ passed: [String]) -> String {
    var parts: [String] = []
    let missing = configured.filter { !passed.contains($0) }
    if !missing.isEmpty {
        let listeners = missing.map { "systemd:\($0)" }.joined(separator: ", ")
        parts.append(
            "the configuration listens on \(listeners), which the service manager did not pass (it passed \(list(passed))); "
                + "start the socket unit, or give it FileDescriptorName=\(missing[0])")
    }
    let unclaimed = passed.filter { !configured.contains($0) }
    if !unclaimed.isEmpty {
        parts.append(
            "the service manager passed \(list(unclaimed)), which no listener of the configuration claims (it names "
                + "\(list(configured))); add a listener with address: systemd:\(unclaimed[0]), or disable that socket unit"
        )
    }
    return parts.joined(separator: "; ")
}

private func list(_ names: [String]) -> String {
    names.isEmpty ? "none" : names.map(quoted).joined(separator: ", ")
}

private func quoted(_ name: String) -> String { String(reflecting: name) }

/// Name of an inherited or stored descriptor (systemd.socket(5)).
///
/// `FileDescriptorName=` of a socket unit, `FDNAME=` of a notification. At most 255 ASCII characters, without control
/// characters and colons.
package struct DescriptorName: RawRepresentable, Hashable, Sendable {
    /// Name as systemd writes it.
    package let rawValue: String

    /// Creates a name; nil if systemd would refuse it, or replace it by `stored` in the descriptor store.
    package init?(rawValue: String) {
        let bytes = rawValue.utf8
        guard (1...255).contains(bytes.count), bytes.allSatisfy({ (0x20..<0x7F).contains($0) && $0 != 0x3A }) else {
            return nil
        }
        self.rawValue = rawValue
    }
}
