// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPTypes
import Secrets

@testable import ChallengeHandling

/// Sessions that one process writes for the next: a reader gets what was written, and nothing from a text that is cut
/// or lengthened.
struct SessionLanguage: Language {
    static let name = "sessions"
    static let period: UInt64 = 16

    var sentence = Sentence()
    private var images: [SessionImage] = []
    private var isBroken = false

    mutating func write() {
        images.removeAll(keepingCapacity: true)
        for _ in 0..<sentence.choices.below(4) { images.append(image()) }
        var bytes = SessionImages.encoded(images).revealBytes()
        isBroken = sentence.choices.once(in: 3)
        if isBroken {
            switch sentence.choices.below(3) {
            case 0: bytes.removeLast(1 + sentence.choices.below(bytes.count - 1))
            case 1: bytes.append(0)
            // One image more than there are, or less.
            default: bytes[9] = bytes[9] &+ (bytes[9] > 0 && sentence.choices.flip() ? 255 : 1)
            }
        }
        sentence.put(bytes)
    }

    private mutating func image() -> SessionImage {
        let origin = Origin(
            scheme: sentence.choices.flip() ? .https : .http, host: sentence.choices.pick(Self.hosts),
            port: sentence.choices.once(in: 3) ? 8443 : nil)
        let key = SessionKey(
            origin: origin, challenge: sentence.choices.pick(Self.names), credential: sentence.choices.pick(Self.names),
            scope: sentence.choices.pick(Self.names))
        var session = Session(expiresAt: sentence.choices.flip() ? nil : Int64(bitPattern: sentence.choices.number()))
        for _ in 0..<sentence.choices.below(3) {
            session.fields.append(
                InjectedField(name: .authorization, value: Secret(sentence.choices.pick(Self.values))))
        }
        if sentence.choices.flip() {
            var jar = CookieJar()
            let url = WebURL(origin: origin, path: "/a/b")
            for _ in 0...sentence.choices.below(3) { jar.store(sentence.choices.pick(Self.cookies), from: url, now: 0) }
            session.cookies = SessionCookies(jar)
        }
        var versions: [String: [UInt8]] = [:]
        for _ in 0..<sentence.choices.below(3) { versions[sentence.choices.pick(Self.names)] = [1, 2, 3] }
        let made = SessionImage(
            key, session, establishedAt: Int64(bitPattern: sentence.choices.number()), configuration: [7],
            versions: versions)
        return made ?? image()
    }

    func check() throws(Violation) {
        let found = try? SessionImages.decoded(Secret(sentence.bytes))
        if isBroken { return try require(found == nil, "broken images are read") }
        try require(found == images, "\(String(describing: found)), not \(images)")
    }

    private static let hosts = ["api.example.com", "::1", "127.0.0.1", "localhost"]
    private static let names = ["", "corp", "api", "a b", "\u{E9}"]
    private static let values = ["Bearer abc", "x", "Basic dTpw", "\t a", "\u{E9}"]
    private static let cookies = [
        "sid=a", "JSESSIONID=0123; Path=/a; Secure; HttpOnly", "a=b; Domain=example.com", "c=; Max-Age=60",
        "__Host-x=y; Path=/; Secure",
    ]
}
