// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Secrets

@testable import ChallengeHandling

private let fuzzedKey = "s3cr3t/k+y"

private let fuzzedValues = RequestInjections(
    parameters: [.init(name: Array("key".utf8), value: Secret(fuzzedKey))], path: Secret("/bots3cr3t%2Fk+y"),
    members: [
        BodyMember(names: [Array("key".utf8)], value: Secret(fuzzedKey)),
        BodyMember(names: [Array("a".utf8), Array("key".utf8)], value: Secret("other")),
    ], secrets: [Secret(fuzzedKey)])

/// Checks that the parser reads a body with injected values as the body with these values.
func checkInjectedBody(_ bytes: [UInt8]) throws(Violation) {
    let read = JSONValue(parsing: bytes)
    guard let sent = try? fuzzedValues.changed(bytes, form: .json).revealBytes() else {
        guard case .object(let members)? = read else { return }
        if case .object? = members["a"] { throw Violation(description: "a plain body was refused") }
        return try require(members["a"] != nil, "a body without the member was refused")
    }
    guard case .object(var members)? = read, sent.count <= JSONLimits.outside.size else { return }
    guard case .object(var inner) = members["a"] ?? .object([:]) else {
        throw Violation(description: "a value was put into something else than an object")
    }
    inner["key"] = .string("other")
    members["a"] = .object(inner)
    members["key"] = .string(fuzzedKey)
    try require(
        JSONValue(parsing: sent) == .object(members), "\(String(decoding: sent, as: UTF8.self)) is another value")
    let again = try? fuzzedValues.changed(sent, form: .json).revealBytes()
    let twice = again.flatMap { JSONValue(parsing: $0) }
    try require(twice == .object(members), "the second time makes another value")
}

/// Checks that the target has the value once, and an answer never, in whatever pieces it comes.
func checkInjectedTarget(_ bytes: [UInt8]) throws(Violation) {
    let span = bytes.span
    var sent: [UInt8] = []
    fuzzedValues.writeTarget(span, base: 0) { piece in
        for index in piece.indices { sent.append(piece[index]) }
    }
    if bytes.first == UInt8(ascii: "/") {
        let query = sent.split(separator: UInt8(ascii: "?"), maxSplits: 1).dropFirst().first ?? []
        // Some servers separate at semicolons as well.
        let count = query.split(whereSeparator: { "&;".utf8.contains($0) }).count { parameter in
            let text = Array(parameter)
            return ParameterList.isNamed(Array("key".utf8), text.span, 0..<text.count)
        }
        try require(count == 1, "the parameter is there \(count) times")
        try require(sent.starts(with: Array("/bots3cr3t%2Fk+y/".utf8)), "the path is not where it belongs")
    }
    let cleaner = fuzzedValues.cleaner
    for kind in [ResponseCleaner.Kind.address, .links, .refresh, .cookie, .other] {
        let cleaned = cleaner.cleaned(span, kind, base: []) ?? bytes
        let text = cleaned.span
        try require(!cleaner.finds(in: text), "the secret is still there")
        try require(cleaned.count <= bytes.count + 1, "a value has become longer")
    }
    var whole = cleaner.bodyCleaner()
    let page = whole.clean(bytes, isEnd: true)
    var body = cleaner.bodyCleaner()
    var pieces: [UInt8] = []
    for start in stride(from: 0, to: bytes.count, by: 3) {
        pieces += body.clean(Array(bytes[start..<min(start + 3, bytes.count)]), isEnd: false)
    }
    pieces += body.clean([], isEnd: true)
    try require(pieces == page && page.count == bytes.count, "pieces are cleaned in another way than the whole")
}
