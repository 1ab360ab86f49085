// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire

/// Reads a request's head that asks for another protocol, then the head of an upstream's answer.
func fuzzHandshakes(_ input: Span<UInt8>) throws(Violation) {
    var parser = RequestHeadParser()
    guard case .complete(let length) = parser.parse(input) else { return }
    let request = input.extracting(0..<length)
    let asked = Upgrades(request.array)
    let isAsking =
        parser.head.version == .http11 && parser.head.body.isEmpty && asked.isNominated
        && !asked.protocols.isEmpty && !asked.isBroken && !asked.isTooLong
    let offer = UpgradeOffer(parser.head, in: request)
    try require((offer != nil) == isAsking, "\(asked.protocols) are offered: \(offer != nil)")
    guard let offer else { return }
    var queue = ByteQueue()
    offer.write(request, to: &queue)
    try require(
        queue.withSpan { $0.string } == asked.protocols.joined(separator: ", "),
        "other protocols than \(asked.protocols)")
    try checkAnswer(input.extracting(length..<input.count), offer, request, asked)
}

private func checkAnswer(
    _ input: Span<UInt8>, _ offer: UpgradeOffer, _ request: Span<UInt8>, _ asked: Upgrades
) throws(Violation) {
    guard let section = Oracle.section(input.array[...]) else { return }
    let answer = input.extracting(0..<section.end)
    var scanner = ResponseHeadScanner()
    guard (try? scanner.scan(answer)) != nil else { return }
    let named = Upgrades(answer.array)
    let known = asked.protocols.map { $0.lowercased() }
    let isMeant =
        scanner.head.status == 101 && answer.string.hasPrefix("HTTP/1.") && !answer.string.hasPrefix("HTTP/1.0")
        && named.isNominated && !named.isBroken && !named.all.isEmpty
        && named.all.allSatisfy { known.contains($0.lowercased()) }
    var isTaken = true
    do throws(WireError) {
        try offer.check(scanner.head, in: answer, askedBy: request)
    } catch {
        isTaken = false
        try require(error.status == 502, "an upstream's fault is told as \(error.status)")
    }
    try require(isTaken == isMeant, "\(named.all) after \(asked.protocols) is taken: \(isTaken)")
}

/// The `Upgrade` fields of a head, read a second time (RFC 9110 §7.8).
private struct Upgrades {
    /// True if `Connection` names the field.
    var isNominated = false
    /// True if a list cannot be read.
    var isBroken = false
    /// Each with its version.
    var all: [String] = []

    /// Those that are not HTTP.
    var protocols: [String] {
        all.filter { element in
            !["h2c", "h2", "http", "https"].contains(element.lowercased().prefix { $0 != "/" })
        }
    }

    /// True if something follows the sixteenth of them, at which reading ends.
    var isTooLong: Bool {
        guard protocols.count >= 16, let last = all.lastIndex(of: protocols[protocols.count - 1]) else { return false }
        return protocols.count > 16 || last < all.count - 1
    }

    init(_ head: [UInt8]) {
        var start = 0
        while head.count > start + 1, head[start] == 13, head[start + 1] == 10 { start += 2 }
        let lines = Oracle.section(head[start...])?.lines ?? []
        for field in lines.dropFirst().compactMap({ Oracle.field($0) }) {
            if field.name == "connection", field.members.contains("upgrade") { isNominated = true }
            guard field.name == "upgrade" else { continue }
            for member in field.value.split(separator: UInt8(ascii: ",")) {
                let isBlank = { (byte: UInt8) in byte == 32 || byte == 9 }
                let element = Array(member.drop(while: isBlank).reversed().drop(while: isBlank).reversed())
                if element.isEmpty { continue }
                let parts = element.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
                if parts.count > 2 || !parts.allSatisfy({ Oracle.isToken($0) }) { isBroken = true }
                all.append(String(decoding: element, as: UTF8.self))
            }
        }
    }
}
