// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import Synchronization

/// Adds the fields of a session only where its realm is.
final class RealmSigner: RequestSigner {
    private let session: Session
    private let realm: String
    private let spaces: RealmSpaces
    private let isAccepted = Atomic(false)

    init(_ session: Session, of realm: String, in spaces: RealmSpaces) {
        self.session = session
        self.realm = realm
        self.spaces = spaces
    }

    var wearsOut: Bool { session.signer?.wearsOut ?? false }

    var names: [HTTPField.Name] { session.fields.map(\.name) + (session.signer?.names ?? []) }

    func sign(_ request: SigningRequest) throws(LoginFailure) -> SignedFields {
        guard isMeant(request.target) else { return SignedFields() }
        var signed = try session.signer?.sign(request) ?? SignedFields()
        signed.fields.insert(contentsOf: session.fields, at: 0)
        return signed
    }

    func bodyDigest(for target: String) -> (any RunningDigest)? {
        isMeant(target) ? session.signer?.bodyDigest(for: target) : nil
    }

    private func isMeant(_ target: String) -> Bool {
        switch spaces.standing(of: realm, at: target) {
        case .mine: true
        case .another: false
        // The request that tries the session must carry it, or its refusal would be taken for the credential's.
        case .unknown: !isAccepted.load(ordering: .relaxed)
        }
    }

    func learn(status: Int, fields: HTTPFields) {
        if status != 401 { isAccepted.store(true, ordering: .relaxed) }
        session.signer?.learn(status: status, fields: fields)
    }
}
