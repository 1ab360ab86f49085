// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Why the sockets of the service manager cannot be used.
package enum ListenSocketsError: Error, Equatable, Sendable, CustomStringConvertible {
    /// `sd_listen_fds_with_names` failed with that `errno`.
    case refused(errno: Int32)
    /// The descriptor of that name is no listening stream socket.
    case notListening(name: String, descriptor: Int32)
    /// A flag of the descriptor of that name cannot be set.
    case unusable(name: String, descriptor: Int32, errno: Int32)
    /// The configuration and the socket unit do not name the same sockets; both lists are sorted.
    case mismatch(configured: [String], passed: [String])

    /// What is wrong, where, and what to do.
    package var description: String {
        switch self {
        case .refused(let errno):
            "the sockets of the service manager cannot be taken: \(systemMessage(errno)); LISTEN_FDS, LISTEN_PID or "
                + "LISTEN_FDNAMES is damaged"
        case .notListening(let name, let descriptor):
            "the socket \(quoted(name)) (descriptor \(descriptor)) passed by the service manager is no listening stream "
                + "socket; the socket unit needs ListenStream= and Accept=no"
        case .unusable(let name, let descriptor, let errno):
            "the socket \(quoted(name)) (descriptor \(descriptor)) passed by the service manager cannot be set to "
                + "non-blocking: \(systemMessage(errno))"
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
