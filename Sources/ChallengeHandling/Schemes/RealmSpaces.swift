// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import HTTPTypes
internal import Secrets
internal import Synchronization

/// Protection spaces of an upstream's realms, learned from its challenges. They serve several logins for different
/// realms at one location: a request can carry only one of their answers.
///
/// A challenge at an address applies to its folder and everything below (RFC 7617 §2.2), except paths that another
/// challenge claims.
public final class RealmSpaces: Sendable {
    /// Relation of an address to a realm.
    enum Membership {
        case mine
        case another
        case unknown
    }

    /// The realms by folder.
    private let known = Mutex(BoundedDictionary<Substring, String>(limit: 256))
    private let changes = Atomic<UInt64>(0)

    /// Creates spaces without any knowledge.
    public init() {}

    /// Records that `realm` was required at `url`. Returns whether that is new.
    func learn(_ realm: String, at url: WebURL) -> Bool {
        known.withLock { known in
            guard Self.realm(url.path[...], in: known.entries) != realm else { return false }
            known.store(realm, for: Self.folder(url.path[...]))
            changes.wrappingAdd(1, ordering: .releasing)
            return true
        }
    }

    /// Returns whether `target` belongs to `realm`.
    func membership(of realm: String, at target: String) -> Membership {
        Self.membership(of: realm, at: target, in: known.withLock(\.entries))
    }

    /// The known realms by folder, and the number of changes up to then.
    fileprivate var snapshot: (realms: [Substring: String], version: UInt64) {
        // Read first: the next request sees a later change.
        let version = version
        return (known.withLock(\.entries), version)
    }

    fileprivate var version: UInt64 { changes.load(ordering: .acquiring) }

    fileprivate static func membership(of realm: String, at target: String, in realms: [Substring: String])
        -> Membership
    {
        let path = Substring(target.utf8.prefix { $0 != UInt8(ascii: "?") })
        guard let found = Self.realm(path, in: realms) else { return .unknown }
        return found == realm ? .mine : .another
    }

    private static func realm(_ path: Substring, in realms: [Substring: String]) -> String? {
        guard !realms.isEmpty else { return nil }
        var folder = folder(path)
        while !folder.isEmpty {
            if let realm = realms[folder] { return realm }
            folder = self.folder(folder.dropLast())
        }
        return nil
    }

    /// Returns the path up to its last slash.
    private static func folder(_ path: Substring) -> Substring {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "" }
        return path[...slash]
    }
}

/// One worker's view of the spaces, which takes the lock only after a change.
struct RealmSpaceView {
    private let spaces: RealmSpaces
    private var known: (realms: [Substring: String], version: UInt64)

    init(_ spaces: RealmSpaces) {
        self.spaces = spaces
        known = spaces.snapshot
    }

    /// Returns whether `target` belongs to `realm`, as `RealmSpaces.membership` does.
    mutating func membership(of realm: String, at target: String) -> RealmSpaces.Membership {
        if spaces.version != known.version { known = spaces.snapshot }
        return RealmSpaces.membership(of: realm, at: target, in: known.realms)
    }
}

/// Signer that adds a session's fields only within its realm.
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

    func bodyReader(for target: String) -> (any BodyReader)? {
        guard let digest = session.signer?.bodyReader(for: target) else { return nil }
        return isMeant(spaces.membership(of: realm, at: target)) ? digest : nil
    }

    private func isMeant(_ membership: RealmSpaces.Membership) -> Bool {
        switch membership {
        case .mine: true
        case .another: false
        // The request that verifies the session must carry the fields, or its refusal would count against the
        // credential.
        case .unknown: !isAccepted.load(ordering: .relaxed)
        }
    }

    var learnsFrom: [HTTPField.Name]? { session.signer.map { $0.learnsFrom } ?? [] }

    func learn(status: Int, fields: HTTPFields, target: String) {
        if status != 401, !isAccepted.load(ordering: .relaxed) { isAccepted.store(true, ordering: .relaxed) }
        session.signer?.learn(status: status, fields: fields, target: target)
    }

    /// One worker's view of the signer.
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
