// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import HTTPTypes
internal import Secrets

/// Makes the fields of a session for each request, where they are not the same for all (Digest, Negotiate).
///
/// Asked by all workers, for many requests at once.
public protocol RequestSigner: AnyObject, Sendable {
    /// The fields that it writes: a caller's own of these names give way.
    var names: [HTTPField.Name] { get }
    /// The fields of one request that is about to be sent, all others of which are written. Does no I/O. Throws where none can be made, which ends the
    /// exchange.
    func sign(_ request: SigningRequest) throws(LoginFailure) -> SignedFields
    /// What the body of a request for `target` is to be fed to before `sign` is asked; `nil` where its fields do not depend
    /// on the body.
    func bodyDigest(for target: String) -> (any RunningDigest)?
    /// A view for one worker, which asks it in place of `sign`.
    func makeView() -> any SignerView
    /// Takes note of the final answer to a request for `target` that it signed; `fields` has at least those of `learnsFrom`.
    func learn(status: Int, fields: HTTPFields, target: String)
    /// The fields of an answer that `learn` looks at; `nil`: all.
    var learnsFrom: [HTTPField.Name]? { get }
    /// Whether the requests of others may use it up at any time, as they do the nonce of Digest, which then need not be said.
    var wearsOut: Bool { get }
    /// The bytes by which another process goes on with it, which the authenticator's `codec` reads; `nil` if it ends with this process.
    var image: SignerImage? { get }
}

extension RequestSigner {
    /// Most serve until they end.
    public var wearsOut: Bool { false }

    /// Most make their fields in no time.
    public func makeView() -> any SignerView { WholeView(signer: self) }

    /// Some look at any.
    public var learnsFrom: [HTTPField.Name]? { nil }

    /// Most end with their process.
    public var image: SignerImage? { nil }

    /// Most protect no bodies.
    public func bodyDigest(for target: String) -> (any RunningDigest)? { nil }
}

/// What a signer made for one request.
public struct SignedFields: Sendable {
    /// The fields.
    public var fields: [InjectedField]
    /// What the answer is shown to; `nil` where a server has nothing to prove.
    public var check: (any AnswerCheck)?

    /// Fields.
    public init(_ fields: [InjectedField] = [], check: (any AnswerCheck)? = nil) {
        self.fields = fields
        self.check = check
    }
}

/// Knows whether the server that answered one request is the one that was asked.
public protocol AnswerCheck: AnyObject, Sendable {
    /// What is wrong with what the final answer proves, in words, without a full stop and without secrets; `nil` where it
    /// proves nothing, or the right thing.
    func fault(status: Int, fields: HTTPFields) -> String?
}

/// A signer as one thread uses it, which may so keep things from one request to the next without a lock.
public protocol SignerView: AnyObject {
    /// As `RequestSigner.sign`, but shows each field to `write` in place of making secrets of them. `request.fields` must not be looked
    /// at once something was written.
    func sign(
        _ request: SigningRequest, _ write: (_ name: HTTPField.Name, _ value: Span<UInt8>) -> Void
    ) throws(LoginFailure) -> (any AnswerCheck)?
}

extension SignedFields {
    /// The fields that `view` makes for `request`.
    init(_ request: SigningRequest, by view: any SignerView) throws(LoginFailure) {
        var fields: [InjectedField] = []
        let check = try view.sign(request) { fields.append(InjectedField(name: $0, value: $1)) }
        self.init(fields, check: check)
    }
}

/// Has the signer itself make the fields.
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
