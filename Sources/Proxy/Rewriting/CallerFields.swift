// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import HTTPWire
internal import System

/// Adds the fields that tell the upstream about the caller, if `forwarded:` is configured.
enum CallerFields {
    /// Returns true if a caller's line of that kind is replaced here and must not be forwarded as it is.
    static func owns(_ kind: FieldName, as style: ForwardingPolicy.Caller) -> Bool {
        switch style {
        case .none: false
        case .forwarded: kind == .forwarded
        case .xForwarded: kind == .xForwardedFor || kind == .xForwardedHost || kind == .xForwardedProto
        }
    }

    /// Writes the fields of `style` for a request of the caller at `peer`.
    ///
    /// A list becomes one line, with the caller's lines in their order and the proxy's last (RFC 9110 §5.3), because
    /// many servers read only the first line. Lines that `Connection` names are removed before the proxy's line is
    /// added, so a caller cannot have it removed.
    static func write(
        _ head: RequestHead, in bytes: Span<UInt8>, from peer: SocketName, as style: ForwardingPolicy.Caller,
        overriddenBy sessions: SessionFields, to fields: FieldSink
    ) {
        let host = head.authority.map { bytes.copy($0) }
        switch style {
        case .none:
            break
        case .forwarded:
            guard !sessions.override(.forwarded, named: Span()) else { return }
            let before = lines(.forwarded, of: head, in: bytes).filter(isReadable)
            fields.append(name: "Forwarded", value: list(before, element(for: peer, host: host)).span)
        case .xForwarded:
            if !sessions.override(.xForwardedFor, named: Span()) {
                let before = lines(.xForwardedFor, of: head, in: bytes)
                fields.append(name: "X-Forwarded-For", value: list(before, Array(peer.address.utf8)).span)
            }
            if !sessions.override(.xForwardedProto, named: Span()) {
                fields.append(name: "X-Forwarded-Proto", value: "http")
            }
            if let host, !sessions.override(.xForwardedHost, named: Span()) {
                fields.append(name: "X-Forwarded-Host", value: host.span)
            }
        }
    }

    /// Returns one element of `Forwarded` (RFC 7239 §4).
    static func element(for peer: SocketName, host: [UInt8]?) -> [UInt8] {
        let node: String
        if case .ipv6(let address, _) = peer {
            node = "\"[\(address)]\""
        } else {
            node = peer.address
        }
        var element = Array("for=\(node)".utf8)
        if let host {
            // With a port, the host is not a token (§6).
            let isToken = !host.contains(UInt8(ascii: ":"))
            element += Array(";host=".utf8) + (isToken ? host : Array("\"".utf8) + host + Array("\"".utf8))
        }
        return element + Array(";proto=http".utf8)
    }

    private static func lines(_ kind: FieldName, of head: RequestHead, in bytes: Span<UInt8>) -> [[UInt8]] {
        var lines: [[UInt8]] = []
        for line in head.fields where line.kind == kind && !line.isHopByHop && !line.value.isEmpty {
            lines.append(bytes.copy(line.value))
        }
        return lines
    }

    private static func list(_ before: [[UInt8]], _ own: [UInt8]) -> [UInt8] {
        Array((before + [own]).joined(separator: Array(", ".utf8)))
    }

    /// Returns true if every quotation mark is closed. An open one would include the element written after the list.
    private static func isReadable(_ list: [UInt8]) -> Bool {
        var isQuoted = false
        var isEscaped = false
        for byte in list {
            if isEscaped {
                isEscaped = false
            } else if byte == UInt8(ascii: "\\"), isQuoted {
                isEscaped = true
            } else if byte == UInt8(ascii: "\"") {
                isQuoted.toggle()
            }
        }
        return !isQuoted
    }
}

extension SocketName {
    /// The address for `X-Forwarded-For`. A caller over a Unix socket has none (RFC 7239 §6.2).
    fileprivate var address: String {
        switch self {
        case .ipv4(let host, _), .ipv6(let host, _): host
        case .nameless: "unknown"
        }
    }
}

/// The address at one end of a connection.
enum SocketName: Equatable {
    /// An IPv4 address in decimal, and the port.
    case ipv4(String, port: UInt16)
    /// An IPv6 address without brackets, and the port.
    case ipv6(String, port: UInt16)
    /// A Unix socket, or a socket without an address any more.
    case nameless

    /// The other end's.
    static func peer(of descriptor: Int32) -> SocketName { SocketName(SocketAddress.peer(of: descriptor)) }

    /// Returns the name of this process's end: the address that the caller connected to, even if the listener accepts
    /// any address.
    static func local(of descriptor: Int32) -> SocketName { SocketName(SocketAddress.local(of: descriptor)) }

    /// Host and port as an address in HTTP has them (RFC 9110 §4.2.1).
    var authority: String? {
        switch self {
        case .ipv4(let host, 80): host
        case .ipv4(let host, let port): "\(host):\(port)"
        case .ipv6(let host, 80): "[\(host)]"
        case .ipv6(let host, let port): "[\(host)]:\(port)"
        case .nameless: nil
        }
    }

    private init(_ address: SocketAddress?) {
        guard let (host, port) = address?.hostAndPort else {
            self = .nameless
            return
        }
        self = host.utf8.contains(UInt8(ascii: ":")) ? .ipv6(host, port: port) : .ipv4(host, port: port)
    }
}
