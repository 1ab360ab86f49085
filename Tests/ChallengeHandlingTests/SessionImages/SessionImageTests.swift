// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPTypes
import Secrets
import Testing

@testable import ChallengeHandling

@Suite("Sessions as they are handed over")
struct SessionImageTests {
    @Test("every kind of session is restored unchanged from its image", arguments: SampleImages.names)
    func roundTrip(_ name: String) throws {
        let image = try #require(SampleImages.all[name])
        #expect(try SessionImages.decoded(SessionImages.encoded([image])) == [image])
    }

    @Test("images of sessions are restored in order, and none gives none")
    func together() throws {
        let images = SampleImages.names.compactMap { SampleImages.all[$0] }
        #expect(try SessionImages.decoded(SessionImages.encoded(images)) == images)
        #expect(try SessionImages.decoded(SessionImages.encoded([])).isEmpty)
    }

    @Test("a session image that ends early is an error", arguments: SampleImages.names)
    func cutOff(_ name: String) throws {
        let bytes = SessionImages.encoded([try #require(SampleImages.all[name])]).revealBytes()
        for length in bytes.indices {
            #expect(throws: SessionImageError.self) { try SessionImages.decoded(Secret(bytes[..<length])) }
        }
        #expect(throws: SessionImageError(.malformed, at: bytes.count)) {
            try SessionImages.decoded(Secret(bytes + [0]))
        }
    }

    @Test("a changed byte in a session image is an error, or gives a valid image", arguments: SampleImages.names)
    func changed(_ name: String) throws {
        let bytes = SessionImages.encoded([try #require(SampleImages.all[name])]).revealBytes()
        for index in bytes.indices {
            for change: UInt8 in [0x01, 0x80, 0xFF] {
                var bytes = bytes
                bytes[index] ^= change
                guard let images = try? SessionImages.decoded(Secret(bytes)) else { continue }
                #expect(try SessionImages.decoded(SessionImages.encoded(images)) == images)
            }
        }
    }

    @Test("another version of session images is distinguished from damage")
    func version() {
        #expect(throws: SessionImageError(.foreign, at: 0)) {
            try SessionImages.decoded(Secret(Array("CSIGNSE1\0\0".utf8)))
        }
        #expect(throws: SessionImageError(.foreign, at: 0)) { try SessionImages.decoded(Secret("")) }
        #expect(throws: SessionImageError(.malformed, at: 8)) {
            try SessionImages.decoded(Secret(Array("CSIGNSE2".utf8) + [0xFF, 0xFF]))
        }
    }

    @Test("invalid lengths in a session image allocate no memory")
    func lengths() {
        let head = Array("CSIGNSE2".utf8) + [0, 1, 0]
        #expect(throws: SessionImageError(.malformed, at: 11)) {
            try SessionImages.decoded(Secret(head + [0xFF, 0xFF, 0xFF, 0xFF, 0x61]))
        }
        #expect(throws: SessionImageError(.cutOff, at: 15)) {
            try SessionImages.decoded(Secret(head + [0, 0, 0xFF, 0xFF, 0x61]))
        }
    }

    @Test("a session that could not be read back is left out of the images")
    func tooLarge() throws {
        let small = try #require(SampleImages.all["token"])
        var large = small
        large.fields = [InjectedField(name: .authorization, value: Secret(String(repeating: "a", count: 300_000)))]
        var broken = small
        broken.fields = [InjectedField(name: .authorization, value: Secret("a\r\nb"))]
        #expect(try SessionImages.decoded(SessionImages.encoded([large, small, broken])) == [small])
    }

    @Test("sessions with connections or tickets have no image")
    func bound() throws {
        var session = Session()
        session.connection = ConnectionCredential(username: Secret("u"), password: Secret("p"))
        let key = SampleImages.key
        #expect(
            SessionImage(key, HeldSession(session, generation: 1, establishedAt: 0), configuration: [], versions: [:])
                == nil)
        var signed = Session()
        signed.signer = OtherSigner()
        #expect(
            SessionImage(key, HeldSession(signed, generation: 1, establishedAt: 0), configuration: [], versions: [:])
                == nil)
    }

    @Test("a session from an image equals the original")
    func session() throws {
        let image = try #require(SampleImages.all["basic"])
        let ann = Credential(name: "corp", fields: ["password": Secret("p")])
        let session = try #require(image.session(credential: ann, codec: .none))
        #expect(session.isVerified && session.use?.key == SampleImages.latch && session.use?.credential.name == "corp")
        #expect(session.use?.retryRejectedAfter == .seconds(1800))
        let held = HeldSession(session, generation: 9, establishedAt: image.establishedAt)
        #expect(SessionImage(image.key, held, configuration: image.configuration, versions: image.versions) == image)
        #expect(image.session(credential: nil, codec: .none) == nil)
        let other = Credential(name: "other", fields: [:])
        #expect(image.session(credential: other, codec: .none) == nil)
    }

    @Test("a signer is recreated from its image by its authenticator's codec, with its credential only")
    func signer() throws {
        let ann = Credential(name: "corp", fields: ["password": Secret("p")])
        let use = CredentialUse(key: SampleImages.latch, credential: ann)
        let session = Session(unverified: use, signer: KeptSigner(Secret("\r\n\0 anything"), for: ann))
        let held = HeldSession(session, generation: 1, establishedAt: 0)
        let image = try #require(SessionImage(SampleImages.key, held, configuration: [], versions: [:]))
        let read = try #require(try SessionImages.decoded(SessionImages.encoded([image])).first)
        let codec = SignerCodec { KeptSigner($0.bytes, for: $1) }
        let signer = try #require(read.session(credential: ann, codec: codec)?.signer as? KeptSigner)
        #expect(signer.bytes == Secret("\r\n\0 anything") && signer.credential.name == "corp")
        #expect(read.session(credential: ann, codec: .none) == nil)
        #expect(read.session(credential: nil, codec: codec) == nil)
    }

    @Test("a signer's image is limited in size, for writing and reading")
    func signerBounds() throws {
        let limit = SignerImage.limit
        #expect(SignerImage(Secret(Array(repeating: 1, count: limit + 1))) == nil)
        var image = try #require(SampleImages.all["empty"])
        image.signer = SignerImage(Secret(Array(repeating: 1, count: limit)))
        var bytes = SessionImages.encoded([image]).revealBytes()
        #expect(try SessionImages.decoded(Secret(bytes)) == [image])
        // Only the latch's flag follows them.
        let place = bytes.count - 1 - limit - 4
        bytes.insert(1, at: bytes.count - 1)
        for index in 0..<4 { bytes[place + index] = UInt8(truncatingIfNeeded: (limit + 1) >> (24 - 8 * index)) }
        #expect(throws: SessionImageError(.malformed, at: place)) { try SessionImages.decoded(Secret(bytes)) }
    }

    @Test("a table takes a session over once, not an ended one, and not while it wins one itself")
    func adoption() throws {
        var table = SessionTable<Int>()
        let key = SampleImages.key
        let outcomes = [
            table.adopt(key, Session(expiresAt: 1_000), establishedAt: 0, now: 1_000),
            table.adopt(key, Session(expiresAt: 10_000), establishedAt: 0, now: 1_000),
            table.adopt(key, Session(), establishedAt: 0, now: 1_000),
        ]
        #expect(outcomes == [false, true, false])
        let held = try #require(table.held(key))
        #expect(held.isTakenOver && held.establishedAt == 0 && held.renewAt == 8_000)
        let decision = table.request(key, rejected: nil, waiter: 1, now: 2_000)
        #expect(decision == .use(held))
        let keeping = [table.beginProactiveLogin(key, now: 2_000), table.beginProactiveLogin(key, now: 8_000)]
        #expect(keeping == [false, true])

        var other = SessionTable<Int>()
        let lead = other.request(key, rejected: nil, waiter: 1, now: 0)
        let isAdopted = other.adopt(key, Session(), establishedAt: 0, now: 0)
        #expect(lead == .logIn && !isAdopted)
    }
}

/// Signer that keeps the bytes and the credential it was created with.
private final class KeptSigner: RequestSigner {
    let bytes: Secret
    let credential: Credential

    init(_ bytes: Secret, for credential: Credential) {
        self.bytes = bytes
        self.credential = credential
    }

    var names: [HTTPField.Name] { [] }
    var image: SignerImage? { SignerImage(bytes) }
    func sign(_ request: SigningRequest) throws(LoginFailure) -> SignedFields { SignedFields() }
    func learn(status: Int, fields: HTTPFields, target: String) {}
}

private final class OtherSigner: RequestSigner {
    var names: [HTTPField.Name] { [] }
    func sign(_ request: SigningRequest) throws(LoginFailure) -> SignedFields { SignedFields() }
    func learn(status: Int, fields: HTTPFields, target: String) {}
}

@Suite("Digest signers as they are handed over")
struct DigestImageTests {
    private static let image = DigestImage(
        parameters: [.init(name: "realm", value: "a \"b\""), .init(name: "nonce", value: "n")],
        url: WebURL(origin: SampleImages.origin, path: "/start", query: "x=1"), clientNonce: "ours", count: 17,
        isAccepted: true)

    @Test("a Digest signer's image is restored unchanged, but not if truncated, longer, or of another kind")
    func exact() throws {
        let bytes = try #require(Self.image.encoded).bytes.revealBytes()
        #expect(try read(bytes) == Self.image)
        for length in bytes.indices { #expect(try read(Array(bytes[..<length])) == nil) }
        #expect(try read(bytes + [0]) == nil)
        #expect(try read(Array("OTHERS1 ".utf8) + bytes.dropFirst(8)) == nil)
    }

    @Test("a changed byte in a Digest signer's image is an error, or gives a valid image")
    func changed() throws {
        let bytes = try #require(Self.image.encoded).bytes.revealBytes()
        for index in bytes.indices {
            for change: UInt8 in [0x01, 0x80, 0xFF] {
                var bytes = bytes
                bytes[index] ^= change
                guard let image = try read(bytes) else { continue }
                #expect(try read(#require(image.encoded).bytes.revealBytes()) == image)
            }
        }
    }

    @Test("a Digest signer that could not be read back has no image")
    func notWritten() {
        var broken = Self.image
        broken.clientNonce = "a\r\nb"
        var many = Self.image
        many.parameters = (0..<17).map { .init(name: "p\($0)", value: "") }
        var twice = Self.image
        twice.parameters.append(twice.parameters[0])
        #expect(broken.encoded == nil && many.encoded == nil && twice.encoded == nil)
    }

    @Test("of several schemes, the one of the image recreates the signer")
    func ofSeveral() throws {
        let origin = SampleImages.origin
        let plan = SchemePlan(
            name: "api", schemes: [BasicScheme(), DigestScheme(digests: NoDigests())], key: nil,
            address: WebURL(origin: origin, path: "/"))
        let ann = Credential(name: "corp", fields: ["username": Secret("ann"), "password": Secret("p")])
        let image = try #require(Self.image.encoded)
        let other = try #require(SignerImage(Secret("DIGEST2 ")))
        #expect(plan.codec.signer(of: image, for: ann)?.image == image)
        #expect(plan.codec.signer(of: other, for: ann) == nil)
        #expect(plan.codec.signer(of: image, for: Credential(name: "corp", fields: [:])) == nil)
    }

    private func read(_ bytes: [UInt8]) throws -> DigestImage? {
        DigestImage(try #require(SignerImage(Secret(bytes))))
    }
}

/// Sessions of each kind, by name.
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
