// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Reader of a request's body before the request is sent, for use by one thread at a time.
public protocol BodyReader: AnyObject {
    /// Form that the body is read in.
    var form: BodyForm { get }
    /// Adds the next bytes.
    func update(_ bytes: ArraySlice<UInt8>)
    /// Returns the body in its form. No call may follow.
    func finish() -> [UInt8]
}

/// Form of a body that a signature depends on.
public enum BodyForm: Sendable, Hashable {
    /// The first bytes of the body itself, at most `BodyContent.limit` and one more.
    case content
    /// Digest of the body.
    case digest(DigestAlgorithm)
}

/// Body that was read in one form.
public struct BodyReading: Sendable, Equatable {
    /// Form.
    public var form: BodyForm
    /// Bytes of the form: the digest's, or the body itself.
    public var bytes: [UInt8]

    /// Creates a reading.
    public init(_ form: BodyForm, _ bytes: [UInt8]) {
        self.form = form
        self.bytes = bytes
    }
}

extension SigningRequest.Body {
    /// Returns the bytes of a form; nil if the body was not read in that form.
    func bytes(_ form: BodyForm) -> [UInt8]? {
        guard case .read(let readings) = self else { return nil }
        return readings.first { $0.form == form }?.bytes
    }
}

extension RunningDigest {
    /// The digest.
    public var form: BodyForm { .digest(algorithm) }
}

/// Reader that keeps the body itself, for signatures over bodies.
public final class BodyContent: BodyReader {
    /// Maximum number of bytes of a body that is signed as a whole.
    public static let limit = 1024 * 1024

    private var bytes: [UInt8] = []

    /// Creates a reader.
    public init() {}

    /// The content.
    public var form: BodyForm { .content }

    /// Keeps the next bytes, up to one more than the limit.
    public func update(_ more: ArraySlice<UInt8>) { bytes += more.prefix(Self.limit + 1 - bytes.count) }

    /// Returns the kept bytes.
    public func finish() -> [UInt8] { bytes }
}
