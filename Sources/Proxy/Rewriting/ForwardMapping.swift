// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling
internal import HTTPWire

/// Replaces local addresses in a WebDAV request by the upstream's: `Destination` (RFC 4918 §10.3), and the tags of `If`
/// (RFC 4918 §10.4).
///
/// To the caller this proxy is the server (RFC 9110 §3.7), so these fields name the listener. The upstream would take that
/// for another server, and answer 502. An address must lead to the upstream of the request: a server that got the address
/// of another route could reach what that route keeps from the caller.
struct ForwardMapping {
    /// A line of the request's head, and its value for the upstream.
    struct Line: Sendable, Equatable {
        /// Position among the fields of the head.
        let index: Int
        /// The value.
        let value: [UInt8]
    }

    /// An address of this listener that does not lead to the upstream of the request.
    struct OtherRoute: Error {}

    /// The origins at which the caller reaches the listener.
    let own: [Origin]
    /// The origin of addresses for the upstream.
    let origin: [UInt8]
    /// Returns the upstream's path for a local path; `nil` if another route takes it.
    let path: (_ local: [UInt8]) -> [UInt8]?

    /// Returns the changed lines of the request. Throws if one names an address that another route takes.
    func lines(of head: RequestHead, in bytes: Span<UInt8>) throws(OtherRoute) -> [Line] {
        var lines: [Line] = []
        for index in head.fields.indices {
            let line = head.fields[index]
            guard let kind = Self.kind(line, in: bytes) else { continue }
            let value: [UInt8]?
            switch kind {
            case .destination: value = try mapped(bytes, line.value)
            case .condition: value = try mappedTags(bytes, line.value)
            }
            if let value { lines.append(Line(index: index, value: value)) }
        }
        return lines
    }

    /// Returns true if a request with that method may have such fields. GET, HEAD and OPTIONS have no effects that depend on
    /// locks.
    static func concerns(_ method: RequestMethod) -> Bool { !method.isSafe }

    /// Returns true if the request has a field with local addresses.
    static func isNeeded(for head: RequestHead, in bytes: Span<UInt8>) -> Bool {
        guard concerns(head.method) else { return false }
        for index in 0..<head.fields.count where kind(head.fields[index], in: bytes) != nil { return true }
        return false
    }

    private enum Kind {
        case destination, condition
    }

    private static func kind(_ line: FieldLine, in bytes: Span<UInt8>) -> Kind? {
        guard line.kind == .other else { return nil }
        switch line.name.count {
        case 2: return bytes.matches(line.name, ignoringCase: "if") ? .condition : nil
        case 11: return bytes.matches(line.name, ignoringCase: "destination") ? .destination : nil
        default: return nil
        }
    }

    /// Returns the address in `range` for the upstream; `nil` if unchanged.
    private func mapped(_ bytes: Span<UInt8>, _ range: ByteRange) throws(OtherRoute) -> [UInt8]? {
        guard let reference = URLReference(bytes, range, scheme: .http) else { return nil }
        if let named = reference.origin, !own.contains(named) { return nil }
        let local = bytes.copy(reference.path)
        guard let path = path(local.isEmpty ? [UInt8(ascii: "/")] : local) else { throw OtherRoute() }
        let result = (reference.origin == nil ? [] : origin) + path + bytes.copy(reference.tail)
        return result == bytes.copy(range) ? nil : result
    }

    /// Returns the value of `If` with its tags for the upstream; `nil` if unchanged.
    ///
    /// Tags are the addresses outside the lists. State tokens inside of them look the same, and stay.
    private func mappedTags(_ bytes: Span<UInt8>, _ range: ByteRange) throws(OtherRoute) -> [UInt8]? {
        var result: [UInt8] = []
        var (copied, index) = (range.start, range.start)
        var isInList = false
        func end(of mark: UInt8) -> Int {
            var end = index
            while end < range.end, bytes[end] != mark { end += 1 }
            return end
        }
        while index < range.end {
            switch bytes[index] {
            case UInt8(ascii: "("): isInList = true
            case UInt8(ascii: ")"): isInList = false
            case UInt8(ascii: "\""):
                // An entity tag may contain any of these characters (RFC 9110 §8.8.3).
                index += 1
                index = end(of: UInt8(ascii: "\""))
            case UInt8(ascii: "<"):
                let tag = ByteRange(start: index + 1, end: end(of: UInt8(ascii: ">")))
                if !isInList, tag.start < tag.end, tag.end < range.end, let value = try mapped(bytes, tag) {
                    result += bytes.copy(ByteRange(start: copied, end: tag.start)) + value
                    copied = tag.end
                }
                index = max(index, tag.end)
            default: break
            }
            index += 1
        }
        guard copied > range.start else { return nil }
        return result + bytes.copy(ByteRange(start: copied, end: range.end))
    }
}

extension ForwardMapping {
    /// Makes the mapping for `request` of `caller`, which goes to the upstream of `plan`.
    init(
        of request: RequestHead, in bytes: Span<UInt8>, from caller: AcceptedCaller, to plan: UpstreamPlan
    ) {
        let authority = request.authority.map { bytes.copy($0) } ?? []
        let range = ByteRange(start: 0, end: authority.count)
        // TLS may end in front of the listener.
        own = [Origin.Scheme.http, .https].compactMap { Origin(scheme: $0, authority.span, range) }
        let passesHost =
            switch plan.forwarding.host {
            case .pass: true
            case .upstream: false
            }
        origin =
            Array("\(plan.base.origin.scheme.rawValue)://".utf8)
            + (passesHost && !authority.isEmpty ? authority : Array(plan.base.origin.authority.utf8))
        let host = request.authorityHost(in: bytes).map { bytes.text($0) } ?? ""
        let method = bytes.text(request.methodRange)
        let (router, user) = (caller.listener.router, caller.user)
        path = { local in
            let text = String(decoding: local, as: UTF8.self)
            guard case .found(let found) = router.decide(host: host, path: text, method: method, user: user),
                found.upstream == plan.name, text.utf8.elementsEqual(local)
            else { return nil }
            let rest = local.dropFirst(found.stripped)
            guard ChallengesByPath.agree(on: Array(rest).span, at: plan) else { return nil }
            return plan.basePath + rest
        }
    }
}

extension LocalReply {
    /// The reply to a WebDAV request with the address of another route.
    static let otherRoute = LocalReply(
        .badRequest,
        detail: """
            `Destination` or `If` names an address of this listener that another route takes, or that servers read in different \
            ways. Both addresses of COPY and MOVE must be at one upstream.
            """)
}
