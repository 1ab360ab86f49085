// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import Secrets

/// Part of a request that a canonical string names: `{method}`, `{body-sha256}`.
enum SignedValue: String, CaseIterable {
    case authority
    case body
    case bodyMD5Base64 = "body-md5-base64"
    case bodySHA1 = "body-sha1"
    case bodySHA256 = "body-sha256"
    case bodySHA256Base64 = "body-sha256-base64"
    case bodySHA512 = "body-sha512"
    case bodySHA512Base64 = "body-sha512-base64"
    /// Date and time as in `Date` (RFC 9110 §5.6.7).
    case date
    /// Date and time of RFC 3339 with seconds.
    case isoTime = "iso-time"
    /// Date and time of RFC 3339 with milliseconds.
    case isoTimeMilliseconds = "iso-time-ms"
    case method
    /// Random UUID (RFC 9562 §5.4), a new one for each request.
    case nonce
    /// Path as it is sent.
    case path
    /// Query as it is sent, without the question mark.
    case query
    /// Signature; in the values of fields only.
    case signature
    /// Path and query as they are sent.
    case target
    /// Seconds since 1970.
    case timestamp
    /// Milliseconds since 1970.
    case timestampMilliseconds = "timestamp-ms"

    /// Digest algorithm, if the value is a digest of the body.
    var algorithm: DigestAlgorithm? {
        switch self {
        case .bodyMD5Base64: .md5
        case .bodySHA1: .sha1
        case .bodySHA256, .bodySHA256Base64: .sha256
        case .bodySHA512, .bodySHA512Base64: .sha512
        default: nil
        }
    }

    /// True if the value is known only after the body was read.
    var needsBody: Bool { self == .body || algorithm != nil }
}

/// Values of one request, for the canonical string and the fields that go with it.
struct SignedValues {
    let request: SigningRequest
    let digests: any MessageDigests
    let nonce: String
    /// Signature, once it is made.
    var signature = ""

    /// Returns the bytes of `value`; nil if the body was not read.
    func bytes(of value: SignedValue) -> [UInt8]? {
        if value == .body { return content }
        if let algorithm = value.algorithm {
            let isBase64 = value.rawValue.hasSuffix("base64")
            return digest(algorithm).map { Array((isBase64 ? Base64.encode($0) : Hex.encode($0)).utf8) }
        }
        return Array(text(of: value).utf8)
    }

    private func text(of value: SignedValue) -> String {
        switch value {
        case .authority: request.origin.authority
        case .date: time.httpDate
        case .isoTime: time.internetDate
        case .isoTimeMilliseconds: time.internetDateWithMilliseconds
        case .method: request.method
        case .nonce: nonce
        case .path: String(request.target.prefix { $0 != "?" })
        case .query: request.target.firstIndex(of: "?").map { String(request.target[$0...].dropFirst()) } ?? ""
        case .signature: signature
        case .target: request.target
        case .timestamp: String(request.now.flooredDivision(by: 1000).quotient)
        case .timestampMilliseconds: String(request.now)
        case .body, .bodyMD5Base64, .bodySHA1, .bodySHA256, .bodySHA256Base64, .bodySHA512, .bodySHA512Base64: ""
        }
    }

    /// Bytes of the whole body; nil if it was not read, or is too long.
    private var content: [UInt8]? {
        if case .none = request.body { return [] }
        return request.body.bytes(.content).flatMap { $0.count > BodyContent.limit ? nil : $0 }
    }

    private func digest(_ algorithm: DigestAlgorithm) -> [UInt8]? {
        request.body.bytes(.digest(algorithm)) ?? content.map { digests.digest(algorithm, of: $0) }
    }

    private var time: CivilTime { CivilTime(millisecondsSince1970: request.now) }
}
