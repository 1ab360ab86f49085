// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Where connections are accepted: `HOST:PORT`, `unix:/path[?mode=0660]` or `systemd:NAME`.
package enum ListenAddress: Sendable, Hashable {
    /// A socket handed over by systemd under that `FileDescriptorName=`.
    case systemd(name: String)
    /// An IPv4 address, an IPv6 address without its brackets, or `localhost`. Port 0 lets the kernel choose.
    case tcp(host: String, port: UInt16)
    /// A Unix socket at an absolute path, with these permission bits where they are written.
    case unix(path: String, mode: UInt32?)

    /// Whether only this machine can connect. A socket of systemd's is not known here and counts as local.
    package var isLocal: Bool {
        switch self {
        case .systemd, .unix: true
        case .tcp(let host, _): host == "localhost" || host == "::1" || host.hasPrefix("127.")
        }
    }
}

extension ListenAddress: CustomStringConvertible {
    /// As the configuration writes it.
    package var description: String {
        switch self {
        case .systemd(let name): "systemd:\(name)"
        case .tcp(let host, let port): host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]:\(port)" : "\(host):\(port)"
        case .unix(let path, nil): "unix:\(path)"
        case .unix(let path, let mode?): "unix:\(path)?mode=0\(String(mode, radix: 8))"
        }
    }
}

/// A user of this machine.
package enum UserReference: Sendable, Hashable {
    /// By name; looked up when the daemon starts and when it reloads.
    case name(String)
    /// By number.
    case uid(UInt32)
}
