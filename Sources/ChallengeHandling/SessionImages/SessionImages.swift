// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
package import Secrets

/// The sessions of one process, written down for the next one.
///
/// The format, version 2, numbers big-endian: `CSIGNSE2`, a count of two bytes, then for each session its key, digests, times, fields,
/// cookies, signer and latch, in the order of `SessionImage`; texts, secrets and the signer's own bytes after a length of four bytes.
/// Any change of it changes the version: an image of another one is not read, and its sessions are won again.
package enum SessionImages {
    /// How many sessions are handed over; more than a table holds there are not.
    package static let limit = 1024
    private static let magic = Array("CSIGNSE2".utf8)
    private static let longestDigest = 64
    private static let mostVersions = 32
    private static let mostFields = 32

    /// The bytes of `images`, at most `limit` of them. One that is larger than what is read back is left out.
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

    /// The sessions in `bytes`: all, or an error.
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
        writer.append(image.wonAt)
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
        let wonAt = try reader.int64()
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
            key: key, configuration: configuration, versions: versions, wonAt: wonAt, expiresAt: expiresAt,
            fields: fields, cookies: cookies, signer: signer, latch: latch)
    }
}
