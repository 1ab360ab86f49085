// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CLinux
internal import Gateway
internal import Glibc
internal import Settings

/// Looks whether the listeners of a configuration can be opened, or are by a countersign that runs.
struct ListenerDiagnosis {
    private static let part = "local"

    let settings: Settings

    func run() -> [Diagnosis] {
        (settings.listeners.map(\.address) + AdminAddresses.of(settings)).map(diagnosis)
    }

    private func diagnosis(_ address: ListenAddress) -> Diagnosis {
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
            if isCountersign(there.bytes, there.family) { return held(address) }
            return open(.tcp(host: host, port: port), address)
        case .unix(let path, _):
            if let bytes = SocketAddress.unix(path), isCountersign(bytes, AF_UNIX) { return held(address) }
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

    /// Whether a countersign answers: it refuses a host that nobody has, and says who it is.
    private func isCountersign(_ address: [UInt8], _ family: Int32) -> Bool {
        let descriptor = socket(family, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return false }
        defer { _ = close(descriptor) }
        var limit = timeval(tv_sec: 2, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            unsafe setsockopt(descriptor, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
        }
        guard SocketAddress.connect(descriptor, to: address) == 0 else { return false }
        let question = Array("GET / HTTP/1.1\r\nHost: doctor.invalid\r\nConnection: close\r\n\r\n".utf8)
        let sent = unsafe question.withUnsafeBytes {
            unsafe send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
        }
        guard sent == question.count else { return false }
        var answer: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while answer.count < 16_384 {
            let count = unsafe buffer.withUnsafeMutableBytes { unsafe recv(descriptor, $0.baseAddress, $0.count, 0) }
            guard count > 0 else { break }
            answer += buffer[..<count]
        }
        return String(decoding: answer, as: UTF8.self).contains("Proxy-Status: countersign;")
    }
}
