// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import HTTPWire

/// Tells the upstream who called, where `forwarded:` asks for it.
enum CallerFields {
    /// Returns whether a caller's line of that kind is taken up here, and must not be forwarded by itself.
    static func owns(_ kind: FieldName, as style: ForwardingPolicy.Caller) -> Bool {
        switch style {
        case .none: false
        case .forwarded: kind == .forwarded
        case .xForwarded: kind == .xForwardedFor || kind == .xForwardedHost || kind == .xForwardedProto
        }
    }

    /// Writes the fields of `style` for a request of the caller at `peer`.
    ///
    /// A list becomes one line, its lines in their order and ours last (RFC 9110 §5.3): many servers read the first only.
    /// A line that `Connection` names is gone before ours comes, so that nobody can have ours removed.
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

    /// One element of `Forwarded` (RFC 7239 §4).
    static func element(for peer: SocketName, host: [UInt8]?) -> [UInt8] {
        let node: String
        if case .ipv6(let address, _) = peer {
            node = "\"[\(address)]\""
        } else {
            node = peer.address
        }
        var element = Array("for=\(node)".utf8)
        if let host {
            // A port makes it no token any more (§6).
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

    /// Returns whether every quote is closed: one that is not would take in what we write behind it.
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
    /// As `X-Forwarded-For` has it; whoever comes over a Unix socket has no address (RFC 7239 §6.2).
    fileprivate var address: String {
        switch self {
        case .ipv4(let host, _), .ipv6(let host, _): host
        case .nameless: "unknown"
        }
    }
}
