// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc
import HTTPWire

@testable import Proxy

/// Reads the destination of a request. In lines: the request target, the value of `Host`, a method.
func fuzzTargets(_ input: Span<UInt8>) throws(Violation) {
    let lines = input.array.split(separator: 10, maxSplits: 3, omittingEmptySubsequences: false)
    let target = lines.first ?? []
    let host = lines.count > 1 ? lines[1] : Array("a".utf8)[...]
    let method = lines.count > 2 ? lines[2] : Array("GET".utf8)[...]
    try checkHost(host)
    let raw = Array(method) + [32] + target + Array(" HTTP/1.1\r\nHost: ".utf8) + host + Array("\r\n\r\n".utf8)
    var parser = RequestHeadParser()
    if case .complete(let length) = parser.parse(raw.span) {
        try require(length == raw.count, "the head ends within its field")
        try HeadOracle.check(parser.head, raw)
        try check(parser.head.target, raw)
        // Both ways of a path to this function: as the parser accepted it, and unchecked.
        try checkRouting(raw.span.text(parser.head.target.path))
    }
    try checkRouting(String(decoding: target, as: UTF8.self))
}

private func check(_ target: RequestTarget, _ raw: [UInt8]) throws(Violation) {
    let whole = raw[target.range.bounds]
    let path = raw[target.path.bounds]
    switch target.form {
    case .origin:
        try require(whole.first == UInt8(ascii: "/") && target.authority == nil, "an origin-form without its slash")
        try require(target.pathAndQuery == target.range, "a path that is not the target")
    case .absolute:
        try require(target.pathAndQuery.end == target.range.end && target.authority != nil, "an absolute-form of what?")
        let scheme = String(decoding: whole.prefix(8), as: UTF8.self).lowercased()
        try require(scheme.hasPrefix(target.isSecure ? "https://" : "http://"), "another scheme")
    case .authority:
        try require(target.authority == target.range && path.isEmpty, "a CONNECT to a path")
    case .asterisk:
        try require(whole.elementsEqual("*".utf8) && path.isEmpty, "an asterisk-form of more")
    }
    try require(path.first ?? UInt8(ascii: "/") == UInt8(ascii: "/"), "a path without its slash")
    let rest = raw[target.pathAndQuery.bounds]
    try require(rest.starts(with: path), "the path is elsewhere")
    try require(rest.count == path.count || rest[path.endIndex] == UInt8(ascii: "?"), "the path ends too early")
    try require(!path.contains(UInt8(ascii: "?")), "the path holds the query")
    for index in rest.indices where rest[index] == UInt8(ascii: "%") {
        let digits = rest[(index + 1)...].prefix(2)
        try require(digits.count == 2 && digits.allSatisfy { isHexadecimal($0) }, "a percent sign of its own")
    }
    try require(!path.contains { #"<>"{}|\^`[]"#.utf8.contains($0) }, "a sign in the path that must be encoded")
    try require(!rest.contains { #"<>"\"#.utf8.contains($0) }, "a sign in the query that must be encoded")
    guard let authority = target.authority else { return }
    let parsed = Authority(raw.span, authority)
    try require(parsed != nil && !raw[authority.bounds].contains(UInt8(ascii: "@")), "no authority")
}

private func isHexadecimal(_ byte: UInt8) -> Bool {
    (0x30...0x39).contains(byte) || (0x41...0x46).contains(byte) || (0x61...0x66).contains(byte)
}

/// RFC 9110 §7.2, and which names a listener serves.
private func checkHost(_ host: ArraySlice<UInt8>) throws(Violation) {
    let bytes = Array(host)
    let range = ByteRange(start: 0, end: bytes.count)
    let policy = HostPolicy(names: ["Bank.Example", "[2001:DB8::1]"])
    let isServed = policy.accepts(range, in: bytes.span)
    guard let authority = Authority(bytes.span, range) else {
        try require(!isServed, "what is no authority is served")
        return
    }
    let name = String(decoding: bytes[authority.host.bounds], as: UTF8.self)
    let rest = bytes[authority.host.end...]
    try require(authority.host.start == 0 && !name.isEmpty, "the host is elsewhere")
    try require(rest.isEmpty || rest.first == UInt8(ascii: ":"), "something follows the host")
    try require(
        authority.port == UInt16(String(decoding: rest.dropFirst(), as: UTF8.self)), "another port")
    let shouted = bytes.map { (0x61...0x7A).contains($0) ? $0 - 32 : $0 }
    try require(policy.accepts(range, in: shouted.span) == isServed, "the case of letters matters")
    var lower = name.lowercased()
    if lower.hasSuffix(".") { lower.removeLast() }
    if lower.hasPrefix("["), let address = shortest(String(lower.dropFirst().dropLast())) { lower = "[\(address)]" }
    let known = ["localhost", "127.0.0.1", "[::1]", "bank.example", "[2001:db8::1]"]
    let octets = lower.split(separator: ".", omittingEmptySubsequences: false)
    let isLoopback =
        octets.count == 4 && octets[0] == "127"
        && octets.allSatisfy { octet in UInt8(octet).map { octet.elementsEqual("\($0)") } ?? false }
    try require(
        isServed == (known.contains(lower) || lower.hasSuffix(".localhost") || isLoopback),
        "\(name) is served: \(isServed)")
}

private let router = Router(
    routes: [
        .init(path: "/accounts/", methods: ["GET"], users: [7], upstream: "guarded", stripsPrefix: true),
        .init(path: "/exact", upstream: "exact", stripsPrefix: true),
        .init(path: "/", methods: ["GET", "POST"], upstream: "rest"),
    ],
    fallback: nil)

private func checkRouting(_ path: String) throws(Violation) {
    for (method, user) in [("GET", UInt32(7)), ("GET", 8), ("POST", 7)] {
        let decision = router.decide(host: "a", path: path, method: method, user: user)
        guard case .found(let destination) = decision else { continue }
        try require(destination.stripped <= path.utf8.count, "more is taken off than there is")
        guard let number = destination.route, let prefix = router.routes[number].path else { continue }
        try require((path.isEmpty ? "/" : path).utf8.starts(with: prefix.utf8), "\(prefix) takes \(path)")
        let left = path.utf8.dropFirst(destination.stripped).first
        try require(left == nil || left == UInt8(ascii: "/"), "what is left begins in the middle of a segment")
        if destination.upstream == "guarded" { try require(method == "GET" && user == 7, "the guard is asleep") }
        // No spelling of a path leads around the guard, whichever server is upstream.
        guard destination.upstream == "rest", method == "GET" else { continue }
        for server in ServerReading.all where server.serves(Array(path.utf8), below: "/accounts/") {
            throw Violation(description: "\(server.name) serves \(path) below /accounts/, and it goes past the guard")
        }
    }
}

/// Returns the C library's shortest spelling of an IPv6 address: a second reader of addresses.
private func shortest(_ address: String) -> String? {
    var bytes = in6_addr()
    guard unsafe inet_pton(AF_INET6, address, &bytes) == 1 else { return nil }
    var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
    guard unsafe inet_ntop(AF_INET6, &bytes, &text, socklen_t(text.count)) != nil else { return nil }
    return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
}
