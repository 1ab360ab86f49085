// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire

/// A request for another protocol (RFC 9110 §7.8), and the answer to it.
struct HandshakeLanguage: Language {
    static let name = "handshakes"
    static let period: UInt64 = 16

    var sentence = Sentence()
    private var offered: [StaticString] = []
    private var isOffer = false
    private var isAccepted = false
    private var head = 0
    private var parser = RequestHeadParser()
    private var scanner = ResponseHeadScanner()

    mutating func write() {
        offered.removeAll(keepingCapacity: true)
        isOffer = true
        sentence.put("GET /chat HTTP/1.1\r\nHost: a\r\n")
        if sentence.choices.once(in: 8) {
            // Something to be sent first makes it an ordinary request.
            sentence.put("Content-Length: 1\r\n")
            isOffer = false
        }
        for _ in 0..<(sentence.choices.once(in: 8) ? 2 : 1) { writeList() }
        if sentence.choices.once(in: 12) {
            isOffer = false
        } else {
            sentence.putInSomeCase("Connection")
            sentence.put(": ")
            if sentence.choices.once(in: 4) { sentence.put("keep-alive, ") }
            sentence.putInSomeCase("upgrade")
            sentence.put("\r\n")
        }
        if offered.isEmpty || offered.count > 16 { isOffer = false }
        sentence.put("\r\n")
        head = sentence.count
        writeAnswer()
    }

    private mutating func writeList() {
        sentence.putInSomeCase("Upgrade")
        sentence.put(":")
        sentence.putBlanks()
        for index in 0..<(1 + sentence.choices.below(3)) {
            if index > 0 { sentence.put(sentence.choices.pick(RequestWords.commas)) }
            if sentence.choices.once(in: 24) {
                sentence.put(sentence.choices.pick(Self.broken))
                isOffer = false
            } else if sentence.choices.once(in: 4) {
                sentence.putInSomeCase(sentence.choices.pick(Self.http))
            } else {
                let name = sentence.choices.pick(Self.protocols)
                sentence.put(name)
                offered.append(name)
            }
        }
        sentence.put("\r\n")
    }

    private mutating func writeAnswer() {
        isAccepted = isOffer
        let fault = sentence.choices.once(in: 3) ? sentence.choices.below(5) : -1
        if fault >= 0 { isAccepted = false }
        sentence.put(fault == 0 ? "HTTP/1.0 101 S\r\n" : fault == 1 ? "HTTP/1.1 200 OK\r\n" : "HTTP/1.1 101 S\r\n")
        if fault != 2 { sentence.put("Connection: Upgrade\r\n") }
        if fault != 3 {
            sentence.put("Upgrade: ")
            // One that was offered, in any case; of several each must have been.
            if let name = offered.first { sentence.putInSomeCase(name) } else { sentence.put("none") }
            if fault == 4 { sentence.put(", another") }
            sentence.put("\r\n")
        }
        sentence.put("\r\n")
    }

    mutating func check() throws(Violation) {
        let bytes = sentence.bytes
        parser.reset()
        let outcome = parser.parse(bytes.span)
        try require(outcome == .complete(length: head), "the request is not taken: \(outcome)")
        let offer = UpgradeOffer(parser.head, in: bytes.span.extracting(0..<head))
        try require((offer != nil) == isOffer, "it is an offer, or not: \(isOffer)")
        guard let offer else { return }
        let names = offer.protocols.map { bytes.span.text($0) }
        try require(names == offered.map { "\($0)" }, "\(names) are offered")
        var isTaken = true
        do throws(WireError) {
            try scanner.scan(bytes.span.extracting(head..<bytes.count))
            try offer.check(
                scanner.head, in: bytes.span.extracting(head..<bytes.count), askedBy: bytes.span.extracting(0..<head))
        } catch {
            isTaken = false
        }
        try require(isTaken == isAccepted, "the answer is taken, or not: \(isAccepted)")
    }

    private static let protocols: [StaticString] = [
        "websocket", "WebSocket", "TLS/1.3", "x!#$%&'*+-.^_`|~/9", "IRC/6.9", "h3c",
    ]
    private static let http: [StaticString] = ["h2c", "HTTP/2.0", "h2", "https/1", "http"]
    private static let broken: [StaticString] = ["a b", "a/", "/a", "a/b/c", "\"a\"", "a;b", "(", "a/ b"]
}
