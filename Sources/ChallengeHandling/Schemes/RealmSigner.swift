// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import Secrets
internal import Synchronization

/// Signer that adds a session's fields only within its realm.
final class RealmSigner: RequestSigner {
    fileprivate let session: Session
    fileprivate let realm: String
    private let spaces: RealmSpaces
    private let isAccepted = Atomic(false)

    init(_ session: Session, of realm: String, in spaces: RealmSpaces) {
        self.session = session
        self.realm = realm
        self.spaces = spaces
    }

    var wearsOut: Bool { session.signer?.wearsOut ?? false }

    var names: [HTTPField.Name] { session.fields.map(\.name) + (session.signer?.names ?? []) }

    /// The spaces: one view serves all signers of an upstream, and finds the realm of a request once.
    var group: (any SignerGroup)? { spaces }

    func sign(_ request: SigningRequest) throws(LoginFailure) -> SignedFields {
        try SignedFields(request, by: makeView())
    }

    func makeView() -> any SignerView { spaces.makeView(of: [self]) }

    func bodyReader(for target: String) -> (any BodyReader)? {
        spaces.makeView(of: [self]).bodyReaders(for: target).first
    }

    var learnsFrom: [HTTPField.Name]? { session.signer.map { $0.learnsFrom } ?? [] }

    func learn(status: Int, fields: HTTPFields, target: String) {
        accept(status: status)
        session.signer?.learn(status: status, fields: fields, target: target)
    }

    /// True if an answer has accepted the session.
    ///
    /// Until then it is used where no realm is known: the request that verifies the session must carry the fields, or its
    /// refusal would count against the credential.
    fileprivate var hasBeenAccepted: Bool { isAccepted.load(ordering: .relaxed) }

    fileprivate func accept(status: Int) {
        if status != 401, !hasBeenAccepted { isAccepted.store(true, ordering: .relaxed) }
    }
}

extension RealmSpaces: SignerGroup {
    /// Returns a view of signers with these spaces.
    public func makeView(of signers: [any RequestSigner]) -> any SignerGroupView {
        RealmGroupView(signers.compactMap { $0 as? RealmSigner }, in: self)
    }
}

/// One worker's view of the signers of an upstream's realms. A request costs the same for one realm and for many.
private final class RealmGroupView: SignerGroupView {
    private let signers: [RealmSigner]
    private let views: [(any SignerView)?]
    /// Positions of the signers of each realm.
    private var realms: [String: [Int]] = [:]
    /// Positions of the signers whose session no answer has accepted yet.
    private var unaccepted: [Int]
    /// Positions of the signers that have a signer of their own, as for Digest.
    private let withSigner: [Int]
    private var spaces: RealmSpaceView

    init(_ signers: [RealmSigner], in spaces: RealmSpaces) {
        self.signers = signers
        views = signers.map { $0.session.signer?.makeView() }
        unaccepted = signers.indices.filter { !signers[$0].hasBeenAccepted }
        withSigner = signers.indices.filter { signers[$0].session.signer != nil }
        self.spaces = RealmSpaceView(spaces)
        for (position, signer) in signers.enumerated() { realms[signer.realm, default: []].append(position) }
    }

    func sign(
        _ request: SigningRequest, _ write: (HTTPField.Name, Span<UInt8>) -> Void
    ) throws(LoginFailure) -> (any AnswerCheck)? {
        var check: (any AnswerCheck)?
        for position in meant(at: request.target) {
            for field in signers[position].session.fields { field.value.withBytes { write(field.name, $0) } }
            guard let next = try views[position]?.sign(request, write) else { continue }
            if let first = check { check = JointCheck(first, next) } else { check = next }
        }
        return check
    }

    func bodyReaders(for target: String) -> [any BodyReader] {
        if withSigner.isEmpty { return [] }
        return meant(at: target).compactMap { signers[$0].session.signer?.bodyReader(for: target) }
    }

    func learn(status: Int, fields: HTTPFields, target: String) {
        if !unaccepted.isEmpty {
            for position in unaccepted { signers[position].accept(status: status) }
            dropAccepted()
        }
        for position in withSigner {
            signers[position].session.signer?.learn(status: status, fields: fields, target: target)
        }
    }

    var wearsOut: Bool { withSigner.contains { signers[$0].wearsOut } }

    /// Returns the positions of the signers for `target`: those of its realm, or if that is unknown, unaccepted ones.
    private func meant(at target: String) -> [Int] {
        if let realm = spaces.realm(at: target) { return realms[realm] ?? [] }
        // Another worker may have got the answer.
        if !unaccepted.isEmpty { dropAccepted() }
        return unaccepted
    }

    private func dropAccepted() { unaccepted.removeAll { signers[$0].hasBeenAccepted } }
}

/// Two checks of one response.
private final class JointCheck: AnswerCheck {
    private let first: any AnswerCheck
    private let second: any AnswerCheck

    init(_ first: any AnswerCheck, _ second: any AnswerCheck) {
        self.first = first
        self.second = second
    }

    func fault(status: Int, fields: HTTPFields) -> String? {
        first.fault(status: status, fields: fields) ?? second.fault(status: status, fields: fields)
    }
}
