// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import Secrets
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
        try SignedFields(request, by: makeView())
    }

    func makeView() -> any SignerView { View(self) }

    func bodyDigest(for target: String) -> (any RunningDigest)? {
        guard let digest = session.signer?.bodyDigest(for: target) else { return nil }
        return isMeant(spaces.membership(of: realm, at: target)) ? digest : nil
    }

    private func isMeant(_ membership: RealmSpaces.Membership) -> Bool {
        switch membership {
        case .mine: true
        case .another: false
        // The request that tries the session must carry it, or its refusal would be taken for the credential's.
        case .unknown: !isAccepted.load(ordering: .relaxed)
        }
    }

    var learnsFrom: [HTTPField.Name]? { session.signer.map { $0.learnsFrom } ?? [] }

    func learn(status: Int, fields: HTTPFields, target: String) {
        if status != 401, !isAccepted.load(ordering: .relaxed) { isAccepted.store(true, ordering: .relaxed) }
        session.signer?.learn(status: status, fields: fields, target: target)
    }

    /// The signer as one worker uses it.
    private final class View: SignerView {
        private let signer: RealmSigner
        private let own: (any SignerView)?
        private var spaces: RealmSpaceView

        init(_ signer: RealmSigner) {
            self.signer = signer
            own = signer.session.signer?.makeView()
            spaces = RealmSpaceView(signer.spaces)
        }

        func sign(
            _ request: SigningRequest, _ write: (HTTPField.Name, Span<UInt8>) -> Void
        ) throws(LoginFailure) -> (any AnswerCheck)? {
            guard signer.isMeant(spaces.membership(of: signer.realm, at: request.target)) else { return nil }
            for field in signer.session.fields { field.value.withBytes { write(field.name, $0) } }
            return try own?.sign(request, write)
        }
    }
}
