// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPTypes
import Secrets

@testable import ChallengeHandling

/// Sessions of each kind, by what they are.
enum SampleImages {
    static let origin = Origin(scheme: .https, host: "api.example.com", port: 8443)
    static let key = SessionKey(origin: origin, challenge: "api", credential: "corp", scope: "read write")
    static let latch = LatchKey(
        origin: Origin(scheme: .https, host: "id.example.com"), challenge: "api", credential: "corp")

    static let names = ["cookies", "digest", "empty", "basic", "token", "many versions"]

    static let all: [String: SessionImage] = [
        "empty": image(),
        "token": image {
            $0.fields = [InjectedField(name: .authorization, value: Secret("Bearer abc.def"))]
            $0.expiresAt = 1_800_000_060_000
            $0.versions = ["corp": Array(repeating: 7, count: 32)]
        },
        "basic": image {
            $0.fields = [InjectedField(name: .authorization, value: Secret("Basic dTpw"))]
            $0.latch = SessionImage.LatchImage(key: latch, retryAfter: 1_800_000)
        },
        "many versions": image {
            $0.versions = ["a": [1], "b": [], "c": Array(repeating: 9, count: 64)]
        },
        "cookies": image { $0.cookies = jar },
        "digest": image { $0.signer = digest.encoded },
    ]

    private static var jar: CookieJar {
        var jar = CookieJar()
        guard let url = WebURL("https://api.example.com/app/login") else { return jar }
        for line in ["JSESSIONID=AB12; Secure", "LtpaToken2=x y; Domain=example.com; Path=/", "t=; Max-Age=60"] {
            _ = jar.store(line, from: url, now: 1_800_000_000_000)
        }
        jar.pass(names: ["t"])
        return jar
    }

    private static let digest = DigestImage(
        parameters: [
            .init(name: "realm", value: "a \"b\""), .init(name: "nonce", value: "n"), .init(name: "qop", value: "auth"),
        ],
        url: WebURL(origin: origin, path: "/start", query: "x=1"), clientNonce: "ours", count: 17, isAccepted: true)

    private static func image(_ change: (inout SessionImage) -> Void = { _ in }) -> SessionImage {
        var image = SessionImage(
            key: key, configuration: Array(repeating: 3, count: 32), versions: [:], establishedAt: 1_800_000_000_000,
            expiresAt: nil, fields: [], cookies: nil, signer: nil, latch: nil)
        change(&image)
        return image
    }
}
