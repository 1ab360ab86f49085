// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import Proxy
internal import Settings
internal import System

/// Diagnosis of the listeners: free, or already open in a running countersign.
struct ListenerDiagnosis {
    private static let part = "local"

    let settings: Settings

    func run() -> [Diagnosis] {
        settings.listeners.map { diagnosis($0.address, mayAsk: Self.mayAsk($0)) }
            + settings.listeners.compactMap(Self.callers)
            + AdminAddresses.of(settings).map { diagnosis($0, mayAsk: true) }
    }

    /// Returns who may call a listener with tokens; `nil` for others.
    private static func callers(_ listener: ListenerSettings) -> Diagnosis? {
        guard let tokens = listener.callers.tokens else { return nil }
        return .note(part, "callers", "\(listener.address): only callers with a token in \(tokens.text)")
    }

    /// True if the listener accepts requests of this user. Others would be logged by the daemon as refused.
    private static func mayAsk(_ listener: ListenerSettings) -> Bool {
        let own = listener.users.map { (try? UserNumbers.uids($0)) ?? [] }
        let routes = listener.routes.map { (try? UserNumbers.uids($0.users)) ?? nil }
        if listener.callers.tokens != nil { return false }
        if let own, !own.contains(getuid()) { return false }
        guard listener.upstream == nil, !routes.isEmpty else { return true }
        return routes.contains { $0?.contains(getuid()) ?? true }
    }

    private func diagnosis(_ address: ListenAddress, mayAsk: Bool) -> Diagnosis {
        switch address {
        case .systemd(let name):
            return .note(Self.part, "listener", "systemd:\(name): opened by the service manager")
        case .tcp(let host, let port):
            let lookup = NameLookup(host: host, port: port)
            guard let there = lookup.addresses.first else {
                return .failed(
                    Self.part, "listener", "\(address): \(lookup.failure ?? "no address")", "check the host",
                    code: EX_CONFIG)
            }
            switch occupant(at: there.address, mayAsk: mayAsk) {
            case .countersign: return held(address)
            case .unknown: return heldByUnknown(address)
            case .none, .other: break
            }
            return open(.tcp(host: host, port: port), address)
        case .unix(let path, _):
            if let socket = SocketAddress(unixPath: path) {
                switch occupant(at: socket, mayAsk: mayAsk) {
                case .countersign: return held(address)
                case .unknown: return heldByUnknown(address)
                case .none, .other: break
                }
            }
            let folder = "/" + path.split(separator: "/").dropLast().joined(separator: "/")
            do throws(SystemError) {
                try FileSystem.checkAccess(folder, W_OK | X_OK)
            } catch {
                // The unit creates the runtime directory.
                if error.code == ENOENT {
                    return .note(Self.part, "listener", "\(address): \(folder) does not exist yet")
                }
                return .failed(
                    Self.part, "listener", "\(address): \(folder): \(error)", "run this as the daemon's user",
                    code: EX_NOPERM)
            }
            return .good(Self.part, "listener", "\(address) is free")
        }
    }

    private func held(_ address: ListenAddress) -> Diagnosis {
        .good(Self.part, "listener", "\(address) is held by a running countersign")
    }

    private func heldByUnknown(_ address: ListenAddress) -> Diagnosis {
        .note(
            Self.part, "listener",
            "\(address) is in use; only users listed in its `users` can find out by which program")
    }

    private func open(_ point: ListenPoint, _ address: ListenAddress) -> Diagnosis {
        do throws(ListenError) {
            point.close(try point.open())
            return .good(Self.part, "listener", "\(address) is free")
        } catch {
            return .failed(
                Self.part, "listener", error.reason,
                "free it, or choose another address (ss -ltnp shows which program uses it)")
        }
    }

    // MARK: Program at an address

    /// Program that listens at an address.
    private enum Occupant {
        case none
        case countersign
        /// A program other than countersign.
        case other
        /// A program that was not asked to identify itself.
        case unknown
    }

    /// Returns the program that listens at an address.
    ///
    /// A countersign identifies itself in the answer to `Max-Forwards: 0` (RFC 9110 §7.6.2).
    private func occupant(at address: SocketAddress, mayAsk: Bool) -> Occupant {
        guard let descriptor = try? Sockets.makeStream(address.family) else { return .none }
        defer { _ = close(descriptor) }
        Sockets.setTimeouts(descriptor, receive: .seconds(2), send: .seconds(2))
        guard (try? address.connect(descriptor)) != nil else { return .none }
        guard mayAsk else { return .unknown }
        let question = Array(
            "OPTIONS * HTTP/1.1\r\nHost: localhost\r\nMax-Forwards: 0\r\nConnection: close\r\n\r\n".utf8)
        guard DescriptorIO.sendAll(question.span, on: descriptor) else { return .other }
        let answer = DescriptorIO.receiveAll(from: descriptor, atMost: 16_384)
        let text = String(decoding: answer, as: UTF8.self)
        return text.contains("\r\nProxy-Status: countersign\r\n") || text.contains("Proxy-Status: countersign;")
            ? .countersign : .other
    }
}
