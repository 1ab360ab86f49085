// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import HTTPTypes
package import Secrets

/// Format of a process's sessions for the next process.
///
/// Version 2, with big-endian numbers: `CSIGNSE2`, a count of two bytes, then for each session its key, digests, times,
/// fields, cookies, signer and latch, in the order of `SessionImage`; texts, secrets and the signer's bytes follow a
/// length of four bytes. Any change of the format changes the version: images of other versions are not read, and new
/// logins are made.
package enum SessionImages {
    /// Maximum number of sessions, as in a table.
    package static let limit = 1024
    private static let magic = Array("CSIGNSE2".utf8)
    private static let longestDigest = 64
    private static let mostVersions = 32
    private static let mostFields = 32

    /// Returns the bytes of at most `limit` images; one too large to be read back is left out.
    package static func encoded(_ images: [SessionImage]) -> Secret {
        var parts: [Secret] = []
        for image in images.prefix(limit) {
            var writer = ImageWriter()
            write(image, to: &writer)
            let part = writer.finish()
            var reader = ImageReader(part)
            if let back = try? read(&reader), reader.isAtEnd, back == image { parts.append(part) }
        }
        var head = ImageWriter()
        head.append(raw: magic)
        head.append(UInt16(clamping: parts.count))
        return .joining([head.finish()] + parts)
    }

    /// Returns all sessions in `bytes`, or throws.
    package static func decoded(_ bytes: Secret) throws(SessionImageError) -> [SessionImage] {
        var reader = ImageReader(bytes)
        try reader.expect(magic)
        let count = try reader.count(atMost: limit)
        var images: [SessionImage] = []
        for _ in 0..<count { images.append(try read(&reader)) }
        guard reader.isAtEnd else { throw SessionImageError(.malformed, at: reader.position) }
        return images
    }

    private static func write(_ image: SessionImage, to writer: inout ImageWriter) {
        writer.append(image.key.origin)
        writer.append(image.key.challenge)
        writer.append(image.key.credential)
        writer.append(image.key.scope)
        writer.append(image.configuration)
        writer.append(UInt16(clamping: image.versions.count))
        for (name, version) in image.versions.sorted(by: { $0.key < $1.key }) {
            writer.append(name)
            writer.append(version)
        }
        writer.append(image.establishedAt)
        writer.append(image.expiresAt)
        writer.append(UInt16(clamping: image.fields.count))
        for field in image.fields {
            writer.append(field.name.rawName)
            writer.append(field.value)
        }
        writer.append(image.cookies != nil)
        if let cookies = image.cookies { cookies.write(to: &writer) }
        writer.append(image.signer != nil)
        if let signer = image.signer { writer.append(signer.bytes) }
        writer.append(image.latch != nil)
        guard let latch = image.latch else { return }
        writer.append(latch.key.origin)
        writer.append(latch.key.challenge)
        writer.append(latch.key.credential)
        writer.append(latch.retryAfter)
    }

    private static func read(_ reader: inout ImageReader) throws(SessionImageError) -> SessionImage {
        let key = SessionKey(
            origin: try reader.origin(), challenge: try reader.text(), credential: try reader.text(),
            scope: try reader.text())
        let configuration = try reader.bytes(atMost: longestDigest)
        var versions: [String: [UInt8]] = [:]
        for _ in 0..<(try reader.count(atMost: mostVersions)) {
            let place = reader.position
            let name = try reader.text()
            guard versions.updateValue(try reader.bytes(atMost: longestDigest), forKey: name) == nil else {
                throw SessionImageError(.malformed, at: place)
            }
        }
        let establishedAt = try reader.int64()
        let expiresAt = try reader.optionalInt64()
        var fields: [InjectedField] = []
        for _ in 0..<(try reader.count(atMost: mostFields)) {
            let place = reader.position
            guard let name = HTTPField.Name(try reader.text()) else { throw SessionImageError(.malformed, at: place) }
            fields.append(InjectedField(name: name, value: try reader.fieldValue()))
        }
        let cookies = try reader.flag() ? try CookieJar(&reader) : nil
        let signer = try reader.flag() ? SignerImage(try reader.secret(atMost: SignerImage.limit)) : nil
        var latch: SessionImage.LatchImage?
        if try reader.flag() {
            let key = LatchKey(
                origin: try reader.origin(), challenge: try reader.text(), credential: try reader.text())
            latch = SessionImage.LatchImage(key: key, retryAfter: try reader.optionalInt64())
        }
        return SessionImage(
            key: key, configuration: configuration, versions: versions, establishedAt: establishedAt,
            expiresAt: expiresAt,
            fields: fields, cookies: cookies, signer: signer, latch: latch)
    }
}

extension CookieJar {
    /// Writes the cookies, in order.
    func write(to writer: inout ImageWriter) {
        writer.append(UInt16(clamping: cookies.count))
        for cookie in cookies {
            writer.append(cookie.name.utf8)
            writer.append(cookie.value)
            writer.append(cookie.domain)
            writer.append(byte: (cookie.isHostOnly ? 1 : 0) | (cookie.reachesCallers ? Cookie.callersBit : 0))
            writer.append(cookie.path)
            writer.append(cookie.isSecure)
            writer.append(cookie.expiresAt)
        }
    }

    /// Reads the cookies that `write` has written.
    init(_ reader: inout ImageReader) throws(SessionImageError) {
        self.init()
        for _ in 0..<(try reader.count(atMost: Self.limit)) {
            let place = reader.position
            let (name, value, domain) = (try reader.fieldValue(), try reader.fieldValue(), try reader.line())
            let kind = try reader.byte()
            var cookie = Cookie(
                name: CookieName(name.revealBytes()), value: value, domain: domain, isHostOnly: kind & 1 == 1,
                path: try reader.line(),
                isSecure: try reader.flag(), expiresAt: try reader.optionalInt64())
            cookie.reachesCallers = kind & Cookie.callersBit != 0
            guard kind <= 1 | Cookie.callersBit, cookie.isWellFormed, !cookies.contains(where: cookie.isSame) else {
                throw SessionImageError(.malformed, at: place)
            }
            cookies.append(cookie)
        }
    }
}

extension Cookie {
    /// Bit next to the host-only bit. Images without such cookies are the same as before this bit existed.
    fileprivate static let callersBit: UInt8 = 2

    init(
        name: CookieName, value: Secret, domain: String, isHostOnly: Bool, path: String, isSecure: Bool,
        expiresAt: Int64?
    ) {
        self.name = name
        self.value = value
        self.domain = domain
        self.isHostOnly = isHostOnly
        self.path = path
        self.isSecure = isSecure
        self.expiresAt = expiresAt
    }

    /// True if the cookie is a single pair, as `SetCookie` parses it.
    fileprivate var isWellFormed: Bool {
        let hasSemicolon = value.withBytes { bytes in
            for index in bytes.indices where bytes[index] == UInt8(ascii: ";") { return true }
            return false
        }
        return (!name.isEmpty || !value.isEmpty)
            && !name.utf8.contains { $0 == UInt8(ascii: ";") || $0 == UInt8(ascii: "=") }
            && !hasSemicolon
            && name.utf8.count + value.count <= CookieJar.sizeLimit && !domain.isEmpty && path.hasPrefix("/")
    }
}

extension ImageReader {
    /// Reads a text without control characters, in particular line breaks.
    mutating func line() throws(SessionImageError) -> String {
        let start = position
        let text = try text()
        guard text.utf8.allSatisfy({ ($0 >= 0x20 && $0 != 0x7F) || $0 == 0x09 }) else {
            throw SessionImageError(.malformed, at: start)
        }
        return text
    }
}

/// Session as handed over to the next process: injected fields, and the data with which the session was established.
///
/// Contains no credential except in the fields themselves; a signer is recreated from the credential.
package struct SessionImage: Sendable, Equatable {
    /// Key of the session.
    package var key: SessionKey
    /// Digest of the challenge's configuration; if this has changed, a new login is made.
    package var configuration: [UInt8]
    /// Versions of the credentials that established the session, by name (see `CredentialVersions`).
    package var versions: [String: [UInt8]]
    /// Time of the login, in ms since 1970.
    package var establishedAt: Int64
    /// Expiry time in ms since 1970, if known.
    package var expiresAt: Int64?
    /// Fields added to each request.
    package var fields: [InjectedField]
    var cookies: CookieJar?
    /// Image from which its signer is recreated, together with the credential.
    package var signer: SignerImage?
    /// Latch that closes if the session is refused.
    package var latch: LatchImage?

    /// Latch, and the time after which it opens.
    package struct LatchImage: Sendable, Equatable {
        /// Key of the latch.
        package var key: LatchKey
        /// Time after which the latch opens by itself, in ms; nil if it never does.
        package var retryAfter: Int64?
    }

    /// Creates the image of a held session; nil if it cannot be handed over.
    ///
    /// Connections and tickets stay with their process, because a new login costs little. `configuration` and
    /// `versions`: see the properties.
    package init?(
        _ key: SessionKey, _ held: HeldSession, configuration: [UInt8], versions: [String: [UInt8]]
    ) {
        self.init(
            key, held.session, establishedAt: held.establishedAt, configuration: configuration, versions: versions)
    }

    /// Creates the image of a session that is not in a table yet.
    package init?(
        _ key: SessionKey, _ session: Session, establishedAt: Int64, configuration: [UInt8], versions: [String: [UInt8]]
    ) {
        // Values for targets and bodies are rendered again, which needs no login.
        guard session.connection == nil, session.injections == nil else { return nil }
        if let signer = session.signer {
            guard let image = signer.image else { return nil }
            self.signer = image
        }
        self.key = key
        self.configuration = configuration
        self.versions = versions
        self.establishedAt = establishedAt
        expiresAt = session.expiresAt
        fields = session.fields
        cookies = session.cookies?.snapshot
        latch = session.use.map { use in
            LatchImage(key: use.key, retryAfter: use.retryRejectedAfter?.milliseconds)
        }
    }

    init(
        key: SessionKey, configuration: [UInt8], versions: [String: [UInt8]], establishedAt: Int64, expiresAt: Int64?,
        fields: [InjectedField], cookies: CookieJar?, signer: SignerImage?, latch: LatchImage?
    ) {
        self.key = key
        self.configuration = configuration
        self.versions = versions
        self.establishedAt = establishedAt
        self.expiresAt = expiresAt
        self.fields = fields
        self.cookies = cookies
        self.signer = signer
        self.latch = latch
    }

    /// Name of the credential that the session requires.
    package var credentialNeeded: String? { latch?.key.credential }

    /// Returns the session; nil without the credential that it requires.
    ///
    /// `credential` is that of `credentialNeeded`, in the version that established the session, and `codec` is that of
    /// the session's authenticator.
    package func session(credential: Credential?, codec: SignerCodec) -> Session? {
        var session = Session(fields: fields, expiresAt: expiresAt, cookies: cookies.map(SessionCookies.init))
        if let latch {
            guard let credential, credential.name == latch.key.credential else { return nil }
            session.use = CredentialUse(
                key: latch.key, credential: credential,
                retryRejectedAfter: latch.retryAfter.map { .milliseconds($0) })
        }
        if let signer {
            guard let signer = codec.signer(of: signer, for: credential) else { return nil }
            session.signer = signer
        }
        return session
    }
}
