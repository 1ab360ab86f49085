// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import HTTPTypes

/// Makes the fields of a session for each request, where they are not the same for all (Digest, Negotiate).
///
/// Asked by all workers, for many requests at once.
public protocol RequestSigner: AnyObject, Sendable {
    /// The fields that it writes: a caller's own of these names give way.
    var names: [HTTPField.Name] { get }
    /// The fields of one request that is about to be sent. `target`: the request target as it goes on the wire. Does no
    /// I/O. Throws where none can be made, which ends the exchange.
    func sign(method: String, target: String) throws(LoginFailure) -> [InjectedField]
    /// Takes note of the final answer to a request that it signed.
    func learn(status: Int, fields: HTTPFields)
    /// Whether the requests of others may use it up at any time, as they do the nonce of Digest, which then need not be said.
    var wearsOut: Bool { get }
}

extension RequestSigner {
    /// Most serve until they end.
    public var wearsOut: Bool { false }
}
