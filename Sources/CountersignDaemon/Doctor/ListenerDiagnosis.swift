// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CLinux
internal import Glibc
internal import Proxy
internal import Settings

/// Looks whether the listeners of a configuration can be opened, or are by a countersign that runs.
struct ListenerDiagnosis {
    private static let part = "local"

    let settings: Settings

    func run() -> [Diagnosis] {
        settings.listeners.map { diagnosis($0.address, mayAsk: Self.mayAsk($0)) }
            + AdminAddresses.of(settings).map { diagnosis($0, mayAsk: true) }
    }

    /// Returns whether this user's requests are let in: those that are not would stand in the daemon's log as refused.
    private static func mayAsk(_ listener: ListenerSettings) -> Bool {
        let own = listener.users.map { (try? UserNumbers.uids($0)) ?? [] }
        let routes = listener.routes.map { (try? UserNumbers.uids($0.users)) ?? nil }
        if let own, !own.contains(getuid()) { return false }
        guard listener.upstream == nil, !routes.isEmpty else { return true }
        return routes.contains { $0?.contains(getuid()) ?? true }
    }

    private func diagnosis(_ address: ListenAddress, mayAsk: Bool) -> Diagnosis {
        switch address {
        case .systemd(let name):
            return .note(Self.part, "listener", "systemd:\(name): the service manager has it")
        case .tcp(let host, let port):
            let lookup = NameLookup(host: host, port: port)
            guard let there = lookup.addresses.first else {
                return .failed(
                    Self.part, "listener", "\(address): \(lookup.failure ?? "no address")", "check the host",
                    code: EX_CONFIG)
            }
            switch occupant(at: there.bytes, there.family, mayAsk: mayAsk) {
            case .countersign: return held(address)
            case .somebody: return heldBySomebody(address)
            case .nobody, .other: break
            }
            return open(.tcp(host: host, port: port), address)
        case .unix(let path, _):
            if let bytes = SocketAddress.unix(path) {
                switch occupant(at: bytes, AF_UNIX, mayAsk: mayAsk) {
                case .countersign: return held(address)
                case .somebody: return heldBySomebody(address)
                case .nobody, .other: break
                }
            }
            let folder = "/" + path.split(separator: "/").dropLast().joined(separator: "/")
            guard unsafe access(folder, W_OK | X_OK) == 0 else {
                let isMissing = errno == ENOENT
                let words = unsafe String(cString: strerror(errno))
                // The runtime directory comes with the unit.
                if isMissing { return .note(Self.part, "listener", "\(address): \(folder) is not there yet") }
                return .failed(
                    Self.part, "listener", "\(address): \(folder): \(words)", "run this as the daemon's user",
                    code: EX_NOPERM)
            }
            return .good(Self.part, "listener", "\(address) is free")
        }
    }

    private func held(_ address: ListenAddress) -> Diagnosis {
        .good(Self.part, "listener", "\(address) is held by a running countersign")
    }

    private func heldBySomebody(_ address: ListenAddress) -> Diagnosis {
        .note(Self.part, "listener", "\(address) is held; only those under its `users` can ask by whom")
    }

    private func open(_ point: ListenPoint, _ address: ListenAddress) -> Diagnosis {
        do throws(ListenError) {
            point.close(try point.open())
            return .good(Self.part, "listener", "\(address) is free")
        } catch {
            return .failed(
                Self.part, "listener", error.reason, "free it, or choose another address (ss -ltnp shows who has it)")
        }
    }

    // MARK: Who answers there

    /// Who listens at an address.
    private enum Occupant {
        case nobody
        case countersign
        /// A program that is no countersign.
        case other
        /// A program that was not asked.
        case somebody
    }

    /// Who listens there: a countersign says so, when it is asked for itself (`Max-Forwards: 0`, RFC 9110 §7.6.2).
    private func occupant(at address: [UInt8], _ family: Int32, mayAsk: Bool) -> Occupant {
        let descriptor = socket(family, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return .nobody }
        defer { _ = close(descriptor) }
        var limit = timeval(tv_sec: 2, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            unsafe setsockopt(descriptor, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
        }
        guard SocketAddress.connect(descriptor, to: address) == 0 else { return .nobody }
        guard mayAsk else { return .somebody }
        let question = Array(
            "OPTIONS * HTTP/1.1\r\nHost: localhost\r\nMax-Forwards: 0\r\nConnection: close\r\n\r\n".utf8)
        let sent = unsafe question.withUnsafeBytes {
            unsafe send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
        }
        guard sent == question.count else { return .other }
        var answer: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while answer.count < 16_384 {
            let count = unsafe buffer.withUnsafeMutableBytes { unsafe recv(descriptor, $0.baseAddress, $0.count, 0) }
            guard count > 0 else { break }
            answer += buffer[..<count]
        }
        let text = String(decoding: answer, as: UTF8.self)
        return text.contains("\r\nProxy-Status: countersign\r\n") || text.contains("Proxy-Status: countersign;")
            ? .countersign : .other
    }
}
