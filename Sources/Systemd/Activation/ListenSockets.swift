// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CSystemd
internal import Glibc

/// The listening sockets that the service manager passed at start (socket activation, `sd_listen_fds(3)`), by the name
/// that `FileDescriptorName=` gives them.
///
/// Several sockets may share one name (`ListenStream=` twice in one unit). The descriptors belong to whoever claims
/// them; this value closes none.
package struct ListenSockets: Equatable, Sendable {
    /// The descriptors by name, in the order of the socket unit.
    package let descriptors: [String: [Int32]]

    /// Sockets that are known already: an earlier take, or none.
    package init(descriptors: [String: [Int32]] = [:]) {
        self.descriptors = descriptors
    }

    /// The names that were passed, sorted.
    package var names: [String] { descriptors.keys.sorted() }

    /// Takes the sockets over from the service manager.
    ///
    /// To be called once, before any thread is started: it removes `LISTEN_FDS`, `LISTEN_PID` and `LISTEN_FDNAMES` from
    /// the environment, so that no helper that is started later believes they are its own. Every socket is set to
    /// close on exec and to non-blocking, and is checked to be a listening stream socket.
    ///
    /// - Parameter stored: the name of what the manager keeps in its descriptor store, which is no socket.
    /// - Returns: no sockets where the process was not activated by a socket; and what was stored, closed on exec.
    package static func take(
        stored: DescriptorName? = nil
    ) throws(ListenSocketsError) -> (sockets: ListenSockets, stored: [Int32]) {
        var result: [String: [Int32]] = [:]
        var kept: [Int32] = []
        for (descriptor, name) in try inherited() {
            if name == stored?.rawValue, isFile(descriptor) {
                _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
                kept.append(descriptor)
                continue
            }
            try prepare(descriptor, name)
            result[name, default: []].append(descriptor)
        }
        return (ListenSockets(descriptors: result), kept)
    }

    /// The sockets for the listeners that the configuration calls `systemd:NAME`.
    ///
    /// - Parameter configured: each NAME of the configuration.
    /// - Throws: where a name was not passed, or a passed one is not in the configuration: a socket that nobody
    ///   accepts from would leave its callers waiting for ever.
    package func claim(_ configured: [String]) throws(ListenSocketsError) -> [String: [Int32]] {
        let wanted = Set(configured)
        let passed = Set(descriptors.keys)
        guard wanted == passed else {
            throw .mismatch(configured: wanted.sorted(), passed: passed.sorted())
        }
        return descriptors
    }
}

/// What `sd_listen_fds_with_names` passed, in its order.
private func inherited() throws(ListenSocketsError) -> [(descriptor: Int32, name: String)] {
    var names: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
    let count = unsafe sd_listen_fds_with_names(1, &names)
    defer { unsafe free(names) }
    guard count >= 0 else { throw .refused(errno: 0 &- count) }
    var result: [(descriptor: Int32, name: String)] = []
    for index in 0..<Int(count) {
        // The array and each name in it are ours to free.
        let name = unsafe names?[index]
        defer { unsafe free(name) }
        let text = unsafe name.map { unsafe String(cString: $0) } ?? "unknown"
        result.append((descriptor: SD_LISTEN_FDS_START + Int32(index), name: text))
    }
    return result
}

private func isFile(_ descriptor: Int32) -> Bool {
    var status = stat()
    return unsafe fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
}

private func prepare(_ descriptor: Int32, _ name: String) throws(ListenSocketsError) {
    guard sd_is_socket(descriptor, AF_UNSPEC, Int32(SOCK_STREAM.rawValue), 1) > 0 else {
        throw .notListening(name: name, descriptor: descriptor)
    }
    // sd_listen_fds sets it too; stated here because everything that is started later depends on it.
    guard fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0 else {
        throw .unusable(name: name, descriptor: descriptor, errno: errno)
    }
    let flags = fcntl(descriptor, F_GETFL)
    guard flags >= 0, fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) == 0 else {
        throw .unusable(name: name, descriptor: descriptor, errno: errno)
    }
}
