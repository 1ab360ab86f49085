// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import HTTPTypes

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
    /// Takes note of the final answer to a request that it signed.
    func learn(status: Int, fields: HTTPFields)
    /// Whether the requests of others may use it up at any time, as they do the nonce of Digest, which then need not be said.
    var wearsOut: Bool { get }
    /// What another process needs to go on with it, which the authenticator's `codec` reads; `nil` if it ends with this process.
    var image: SignerImage? { get }
}

extension RequestSigner {
    /// Most serve until they end.
    public var wearsOut: Bool { false }

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
