// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire

@testable import Proxy

/// A `Set-Cookie` of an upstream (RFC 6265 §4.1), and the caller's form of it.
struct CookieLanguage: Language {
    static let name = "cookies"
    static let target = "rewriting"

    var sentence = Sentence()
    private var site = 0
    private var name: [UInt8] = []
    private var value: [UInt8] = []
    private var isForeign = false
    private var pathCount = 0
    private var others: [[UInt8]] = []

    mutating func write() {
        (isForeign, pathCount) = (false, 0)
        others.removeAll(keepingCapacity: true)
        site = sentence.choices.below(3)
        sentence.put("c")
        sentence.put(UInt8(site))
        let start = sentence.count
        sentence.put(sentence.choices.pick(Self.names))
        name = Array(sentence.bytes[start...])
        sentence.put("=")
        let valueStart = sentence.count
        sentence.put(sentence.choices.pick(Self.values))
        value = Array(sentence.bytes[valueStart...])
        for _ in 0..<sentence.choices.below(6) {
            sentence.put(sentence.choices.once(in: 8) ? " ;" : ";")
            let start = sentence.count
            sentence.putBlanks()
            switch sentence.choices.below(7) {
            case 0:
                sentence.putInSomeCase("secure")
                if sentence.choices.once(in: 8) { sentence.put("=x") }
            case 1: sentence.putInSomeCase("partitioned")
            case 2:
                sentence.putInSomeCase("samesite")
                sentence.put("=")
                sentence.putInSomeCase("none")
            case 3:
                sentence.putInSomeCase("domain")
                sentence.put("=")
                let (domain, isOurs) = sentence.choices.pick(Self.domains)
                sentence.putInSomeCase(domain)
                isForeign = !isOurs
            case 4:
                sentence.putInSomeCase("path")
                sentence.put("=")
                sentence.put(sentence.choices.pick(Self.paths))
                pathCount += 1
            default:
                sentence.put(sentence.choices.pick(Self.others))
                others.append(Array(sentence.bytes[start...]))
            }
        }
    }

    func check() throws(Violation) {
        let cookie = Array(sentence.bytes.dropFirst(2))
        guard Oracle.isTrimmed(cookie) else { return }
        let local = LocalCookie.local(cookie.span, from: Site.all[site].place) ?? cookie
        let parts = local.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false).map(Self.trimmed)
        let isPrefixed = ["__host-", "__secure-", "__http-"].contains { prefix in
            name.map(\.lowercasedLetter).starts(with: prefix.utf8)
        }
        let pair = (isPrefixed ? Array("countersign-".utf8) : []) + name + [0x3D] + value
        try require(parts.first == Self.trimmed(pair[...]), "another pair: \(String(decoding: local, as: UTF8.self))")
        var found: [[UInt8]] = []
        var paths = 0
        for part in parts.dropFirst() {
            let key = Array(part.prefix { $0 != 0x3D }.map(\.lowercasedLetter))
            let text = Self.trimmed(part.dropFirst(key.count + 1)[...])
            switch String(decoding: key, as: UTF8.self) {
            case "secure", "partitioned": throw Violation(description: "a cookie for HTTPS only")
            case "samesite" where text.map(\.lowercasedLetter) == Array("none".utf8):
                throw Violation(description: "a cookie of other sites, which is for HTTPS only")
            case "domain": try require(isForeign, "the upstream's domain is left")
            case "path":
                paths += 1
                try require(text.isEmpty || text.first == 0x2F || text == [0x61], "another path")
            default: found.append(part)
            }
        }
        try require(found == others.map { Self.trimmed($0[...]) }, "other attributes than \(others)")
        try require(paths == pathCount, "\(paths) paths, not \(pathCount)")
        let sent = parts[0]
        let back = LocalCookie.restored(sent.span) ?? sent
        if !name.starts(with: "countersign-__".utf8) {
            try require(back == Self.trimmed((name + [0x3D] + value)[...]), "it comes back as another")
        }
    }

    private static func trimmed(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        var bytes = bytes
        while bytes.first == 32 || bytes.first == 9 { bytes.removeFirst() }
        while bytes.last == 32 || bytes.last == 9 { bytes.removeLast() }
        return Array(bytes)
    }

    private static let names: [StaticString] = [
        "sid", "JSESSIONID", "__Host-a", "__Secure-b", "__HTTP-c", "__host-", "countersign-__Host-a", "countersign-x",
        "a b", "!#$", "\u{E9}", "__hostx",
    ]
    private static let values: [StaticString] = [
        "", "a", "\"a b\"", "a=b", "a,b", "%3B", "\u{E9}", "0123456789abcdef", "secure", "a|b:c/d",
    ]
    private static let domains: [(StaticString, Bool)] = [
        ("bank.example", true), (".bank.example", true), ("example", true), (".example", true),
        ("other.example", false), ("www.bank.example", false),
        ("ank.example", false), ("bank.example.", false), ("..example", false),
    ]
    private static let paths: [StaticString] = ["/", "/a", "/a/", "/a/b", "/ab", "/x/y", "", "a", "/p", "/%61"]
    private static let others: [StaticString] = [
        "HttpOnly", "Max-Age=3600", "Expires=Wed, 21 Oct 2026 07:28:00 GMT", "SameSite=Lax", "samesite=strict",
        "Priority=High", "x", "=y", "secured", "path-x=/a",
        "Version=1", "Comment=a=b",
    ]
}
