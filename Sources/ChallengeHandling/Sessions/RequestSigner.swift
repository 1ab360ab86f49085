// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import HTTPTypes
public import Secrets

/// Signer that makes a session's fields for each request, if they differ (Digest, Negotiate).
///
/// Used by all workers, for many requests at once.
public protocol RequestSigner: AnyObject, Sendable {
    /// Names of its fields: a caller's own fields of these names are dropped.
    var names: [HTTPField.Name] { get }
    /// Returns the fields of a request whose other fields are complete; does no I/O.
    ///
    /// Throws if no fields can be made, which ends the exchange.
    func sign(_ request: SigningRequest) throws(LoginFailure) -> SignedFields
    /// Returns the reader that must process the body of a request for `target` before `sign`.
    ///
    /// Nil if the fields do not depend on the body.
    func bodyReader(for target: String) -> (any BodyReader)?
    /// Returns a view for one worker, used in place of `sign`.
    func makeView() -> any SignerView
    /// Group of signers that one view serves together; nil if each has a view of its own.
    var group: (any SignerGroup)? { get }
    /// Learns from the final response to a signed request for `target`; `fields` includes at least `learnsFrom`.
    func learn(status: Int, fields: HTTPFields, target: String)
    /// Response fields that `learn` reads; nil for all.
    var learnsFrom: [HTTPField.Name]? { get }
    /// True if requests of others may exhaust the signer at any time, like a nonce of Digest.
    ///
    /// The end then needs no report.
    var wearsOut: Bool { get }
    /// State from which another process continues, read by the authenticator's `codec`; nil if there is none.
    var image: SignerImage? { get }
}

extension RequestSigner {
    /// False by default: signers serve until the session ends.
    public var wearsOut: Bool { false }

    /// Returns a view that calls `sign`, by default.
    public func makeView() -> any SignerView { WholeView(signer: self) }

    /// Nil by default: each signer has a view of its own.
    public var group: (any SignerGroup)? { nil }

    /// Nil by default: all fields.
    public var learnsFrom: [HTTPField.Name]? { nil }

    /// Nil by default: the signer ends with its process.
    public var image: SignerImage? { nil }

    /// Returns nil by default: the body is not signed.
    public func bodyReader(for target: String) -> (any BodyReader)? { nil }
}

/// Fields that a signer made for one request.
public struct SignedFields: Sendable {
    /// The fields.
    public var fields: [InjectedField]
    /// Check of the response; nil if the server has nothing to prove.
    public var check: (any AnswerCheck)?

    /// Creates signed fields.
    public init(_ fields: [InjectedField] = [], check: (any AnswerCheck)? = nil) {
        self.fields = fields
        self.check = check
    }
}

/// Check that a response comes from the server that was addressed.
public protocol AnswerCheck: AnyObject, Sendable {
    /// Returns the fault of a response's proof, without a full stop and without secrets.
    ///
    /// Nil if the proof is right or missing.
    func fault(status: Int, fields: HTTPFields) -> String?
}

/// Signer for one thread, which can keep state between requests without a lock.
public protocol SignerView: AnyObject {
    /// Signs like `RequestSigner.sign`, but passes each field to `write` instead of creating secrets.
    ///
    /// `request.fields` must not be read after the first call of `write`.
    func sign(
        _ request: SigningRequest, _ write: (_ name: HTTPField.Name, _ value: Span<UInt8>) -> Void
    ) throws(LoginFailure) -> (any AnswerCheck)?
}

/// Signers of which a request needs few, so that one view finds these instead of asking all.
public protocol SignerGroup: AnyObject, Sendable {
    /// Returns a view for one worker, used in place of the methods of these signers, which all belong to the group.
    func makeView(of signers: [any RequestSigner]) -> any SignerGroupView
}

/// View of a group of signers for one thread.
public protocol SignerGroupView: SignerView {
    /// Returns the readers that must process the body of a request for `target` before `sign`.
    func bodyReaders(for target: String) -> [any BodyReader]
    /// Learns from the final response to a signed request, as `RequestSigner.learn` does.
    func learn(status: Int, fields: HTTPFields, target: String)
    /// True if requests of others may exhaust one of the signers at any time.
    var wearsOut: Bool { get }
}

extension SignedFields {
    init(_ request: SigningRequest, by view: any SignerView) throws(LoginFailure) {
        var fields: [InjectedField] = []
        let check = try view.sign(request) { fields.append(InjectedField(name: $0, value: $1)) }
        self.init(fields, check: check)
    }
}

/// View that calls the signer itself.
private final class WholeView: SignerView {
    private let signer: any RequestSigner

    init(signer: any RequestSigner) { self.signer = signer }

    func sign(
        _ request: SigningRequest, _ write: (HTTPField.Name, Span<UInt8>) -> Void
    ) throws(LoginFailure) -> (any AnswerCheck)? {
        let signed = try signer.sign(request)
        for field in signed.fields { field.value.withBytes { write(field.name, $0) } }
        return signed.check
    }
}

/// State of a signer besides the credential, for another process.
///
/// Only a signer of the same kind can read the bytes.
public struct SignerImage: Sendable, Equatable {
    /// Maximum number of bytes.
    public static let limit = 256 * 1024

    /// The bytes, beginning with an identifier of the kind: an authenticator with several schemes tries each of them.
    public let bytes: Secret

    /// Creates an image; nil beyond `limit` bytes.
    public init?(_ bytes: Secret) {
        guard bytes.count <= Self.limit else { return nil }
        self.bytes = bytes
    }
}

/// Decoder that recreates the signers of an authenticator's sessions after a restart.
public struct SignerCodec: Sendable {
    /// Decoder for authenticators without signers, or with signers that end with their process.
    public static let none = SignerCodec { _, _ in nil }

    private let decode: @Sendable (SignerImage, Credential?) -> (any RequestSigner)?

    /// Creates a decoder; `decode` may receive damaged images or images of another kind, and returns nil for them.
    public init(decode: @escaping @Sendable (SignerImage, Credential) -> (any RequestSigner)?) {
        self.decode = { image, credential in credential.flatMap { decode(image, $0) } }
    }

    /// Creates a decoder of signers that need no credential.
    init(decode: @escaping @Sendable (SignerImage) -> (any RequestSigner)?) {
        self.decode = { image, _ in decode(image) }
    }

    /// Returns the signer of `image`; nil if it cannot be recreated with `credential`.
    public func signer(of image: SignerImage, for credential: Credential?) -> (any RequestSigner)? {
        decode(image, credential)
    }
}
